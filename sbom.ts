// npm run sbom: writes reports/sbom.cdx.json, a CycloneDX list of the packages that the program contains or needs. Most are bundled,
// and development dependencies for npm: what counts is what the sources import, with all that it depends on.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const root = import.meta.dirname;

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly scope?: string;
}

export interface BillOfMaterials {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

/** The packages that the sources import, those of the pages too. */
function findImported(): Set<string> {
  const source = join(root, "src");
  const files = readdirSync(source, { recursive: true, encoding: "utf8" });
  const specifiers = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => [
      ...readFileSync(join(source, file), "utf8").matchAll(/(?:from|import)\s*\(?\s*"([^".][^"]*)"/g),
    ])
    .map(([, specifier = ""]) => specifier)
    .filter((specifier) => !specifier.startsWith("node:"));
  return new Set(specifiers.map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier));
}

export function createSbom(): BillOfMaterials {
  const args = ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=application"];
  const output = execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const whole = JSON.parse(output) as BillOfMaterials;
  const { name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { name: string };
  const own = whole.metadata.component["bom-ref"];
  const dependsOn = new Map(whole.dependencies.map(({ ref, dependsOn: needed = [] }) => [ref, needed]));
  const imported = findImported();
  const nameOf = new Map(whole.components.map((component) => [component["bom-ref"], component.name]));
  const used = new Set((dependsOn.get(own) ?? []).filter((ref) => imported.has(nameOf.get(ref) ?? "")));
  const direct = [...used];
  for (const ref of used) for (const needed of dependsOn.get(ref) ?? []) used.add(needed);
  return {
    ...whole,
    metadata: { ...whole.metadata, component: { ...whole.metadata.component, name } },
    components: whole.components
      .filter((component) => used.has(component["bom-ref"]))
      .map((component) => ({ ...component, scope: "required" })),
    dependencies: [{ ref: own, dependsOn: direct }, ...whole.dependencies.filter(({ ref }) => used.has(ref))],
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const sbom = createSbom();
  const file = join(root, "reports/sbom.cdx.json");
  mkdirSync(join(root, "reports"), { recursive: true });
  writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
  process.stdout.write(`${file}: ${sbom.components.length} packages\n`);
}
