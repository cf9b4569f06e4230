import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listen } from "../listen.ts";

/** Where a proxy interrupts: at the nth COPY of ticks or COMMIT after it, before, inside or after it. */
export interface CutPoint {
  readonly at: "before COPY" | "in COPY" | "after COPY" | "before COMMIT" | "in COMMIT" | "after COMMIT";
  readonly count: number;
}

/**
 * A proxy in front of PostgreSQL that calls `onCut` once, when the client reaches the point, and ends both connections.
 * With `holds` it keeps them instead, and holds back what the client sends until `release`. It reads the client's messages
 * as they pass.
 */
export async function startCuttingProxy(
  targetPort: number,
  point: CutPoint,
  onCut: () => void,
  { holds = false }: { readonly holds?: boolean } = {},
): Promise<{ readonly port: number; readonly hasCut: () => boolean; readonly release: () => void }> {
  let release = () => {};
  let copies = 0;
  let hasCut = false;
  const server = createServer((client) => {
    const target = connect(targetPort, "127.0.0.1");
    let copied = 0;
    let isCommitting = false;
    let held: Buffer[] | undefined;
    const cut = (chunk?: Buffer) => {
      hasCut = true;
      onCut();
      if (holds) {
        held = chunk ? [chunk] : [];
        release = () => {
          for (const each of held ?? []) target.write(each);
          held = undefined;
        };
        return;
      }
      client.destroy();
      target.destroy();
    };
    pipe(client, target, (chunk) => {
      if (held) return void held.push(chunk);
      const text = chunk.toString("latin1");
      const isCopy = text.includes("COPY mds.index_tick_rows");
      if (isCopy) copies++;
      const isDue = !hasCut && copies === point.count;
      if (isDue && isCopy && point.at === "before COPY") return cut(chunk);
      if (isDue && !isCopy && copies > 0) copied += chunk.length;
      if (isDue && point.at === "in COPY" && copied > 100_000) return cut(chunk);
      const isCommit = text.includes("COMMIT\0");
      if (isDue && isCommit && point.at === "before COMMIT") return cut(chunk);
      target.write(chunk);
      if (isDue && isCommit && point.at === "in COMMIT") return cut();
      isCommitting = isDue && isCommit;
    });
    pipe(target, client, (chunk) => {
      const isDue = !hasCut && copies === point.count;
      if (isDue && point.at === "after COPY" && chunk.toString("latin1").includes("COPY 20000")) return cut();
      client.write(chunk);
      if (isCommitting && point.at === "after COMMIT") return cut();
    });
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  return { port, hasCut: () => hasCut, release: () => release() };
}

function pipe(from: Socket, to: Socket, pass: (chunk: Buffer) => void): void {
  from.on("data", pass);
  from.on("close", () => to.destroy());
  from.on("error", () => to.destroy());
}
