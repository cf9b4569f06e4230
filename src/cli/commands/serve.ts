import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { usageFailure } from "../../model/failure.ts";
import { hashSecret } from "../../serve/client-access.ts";
import { startServeServer } from "../../serve/serve-server.ts";
import { type CommandContext, programVersion } from "../support/context.ts";
import { addSettingsFlags, loadWithLog, logLevelOption } from "../support/flags.ts";

export function addServeCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("serve"), "warehouse", "serve")
    .description(
      "Answers every endpoint of the service (tokens, REST and websocket) from the warehouse, until it is stopped. It only reads: " +
        "a daemon may write the warehouse at the same time, or nobody. Prints the settings for a client on stdout, one " +
        "NAME=value per line.\n\n" +
        "With serve.clients, a client needs a token. Make the hash of its secret with:\n\n" +
        "  mds-sync serve --hash-secret < secret.txt > research.hash",
    )
    .option("--hash-secret", "read a secret from stdin, write its hash for secretHashFile, and exit")
    .option(...logLevelOption())
    .action(async (flags: { readonly hashSecret?: boolean }, command: Command) => {
      const { stdout, stderr, stopping, clock } = context;
      if (flags.hashSecret) {
        const secret = (context.stdin ? await text(context.stdin) : "").replace(/\r?\n$/, "");
        if (secret === "") throw usageFailure("--hash-secret got no secret", "write the secret to stdin");
        stdout.write(`${await hashSecret(secret)}\n`);
        return;
      }
      const { loaded, log } = loadWithLog(command, context);
      const { settings } = loaded;
      const server = await startServeServer({
        ...settings.serve,
        warehouse: settings.warehouse.path,
        version: programVersion(),
        clock,
        log,
      });
      stdout.write(`MDS_BASE_URL=${server.baseUrl}\nMDS_WS_URL=${server.wsUrl}\n`);
      if (settings.serve.clients.length === 0) stdout.write("MDS_CLIENT_ID=any\nMDS_CLIENT_SECRET=any\n");
      stderr.write(`serving ${settings.warehouse.path}; stop it with Ctrl-C\n`);
      if (!stopping.aborted) await once(stopping, "abort");
      await server.close();
      stderr.write("stopped cleanly\n");
    });
}
