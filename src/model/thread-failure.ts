import { Failure } from "./failure.ts";

const remedies: Readonly<Record<string, string>> = {
  EAGAIN: "raise the limit of threads (TasksMax, ulimit -u), or give it more memory",
  EMFILE: "raise the limit of open files (LimitNOFILE, ulimit -n)",
  ENFILE: "raise the system's limit of open files (fs.file-max)",
};

/** The system refused a thread of ours. Nothing is wrong with the program, so nobody is asked to report it. */
export function threadFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error);
  const code = /\bE[A-Z]+\b/.exec(text)?.[0] ?? text;
  return new Failure(`no thread could be started (${code})`, {
    family: "operator",
    code: "no_thread",
    remedy: remedies[code],
    cause: error,
  });
}
