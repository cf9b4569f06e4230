import { spawn } from "node:child_process";
import { createReadStream, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { basename, dirname, join } from "node:path";
import { listen } from "../listen.ts";

type Manifest = Readonly<Record<string, unknown>>;

/** A version of a package: a folder of a clone's node_modules, or a tarball. */
interface PackageVersion {
  readonly manifest: Manifest;
  readonly source: string;
}

interface LocalRegistry {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * An npm registry without a network: it has the packages that a clone has installed, in their versions, and one tarball. npm
 * resolves, fetches and unpacks them as those of any registry.
 */
export async function startLocalRegistry(root: string, tarball: string): Promise<LocalRegistry> {
  const packages = new Map<string, Map<string, PackageVersion>>();
  const add = (name: string, manifest: Manifest, source: string) => {
    const versions = packages.get(name) ?? new Map<string, PackageVersion>();
    packages.set(name, versions.set(String(manifest.version), { manifest, source }));
  };
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { packages: object };
  for (const path of Object.keys(lock.packages)) {
    const name = path.split("node_modules/").at(-1) ?? "";
    const manifest = name === "" ? undefined : readManifest(join(root, path));
    if (manifest) add(name, manifest, join(root, path));
  }
  add("mds-sync", readManifest(root) ?? {}, tarball);

  const server = createServer((request, response) => {
    const [name = "", version] = decodeURIComponent((request.url ?? "").slice(1)).split("/-/");
    const versions = packages.get(name);
    const found = version === undefined ? undefined : versions?.get(version);
    if (found) sendTarball(found.source, response);
    else if (!versions || version !== undefined) response.writeHead(404).end("{}");
    else response.end(JSON.stringify(describePackage(name, versions, `http://${request.headers.host}`)));
  });
  const url = `http://127.0.0.1:${await listen(server)}/`;
  return {
    url,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Undefined for a package of another platform, which is not installed. */
function readManifest(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  } catch {
    return undefined;
  }
}

function describePackage(name: string, versions: ReadonlyMap<string, PackageVersion>, origin: string) {
  const described = [...versions].map(([version, { manifest }]) => [
    version,
    { ...manifest, dist: { tarball: `${origin}/${name}/-/${version}` } },
  ]);
  const latest = [...versions.keys()].at(-1);
  return { name, "dist-tags": { latest }, versions: Object.fromEntries(described) };
}

function sendTarball(source: string, response: ServerResponse): void {
  if (source.endsWith(".tgz")) {
    createReadStream(source).pipe(response);
    return;
  }
  // Without source maps and C sources, a third of all bytes, which no test reads.
  const excluded = ["--exclude=node_modules", "--exclude=*.map", "--exclude=*.[ch]"];
  spawn("tar", ["-c", ...excluded, "-C", dirname(source), basename(source)], {
    stdio: ["ignore", "pipe", "inherit"],
  }).stdout.pipe(response);
}
