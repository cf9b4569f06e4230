import type { Command } from "commander";
import type { CommandContext } from "./command-context.ts";
export function addSimulateCommand(program: Command, _context: CommandContext): void {
  program.command("simulate");
}
