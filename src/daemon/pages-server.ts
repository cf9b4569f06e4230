import type { DaemonView } from "../dashboard/daemon-status.ts";
import { startDashboardServer } from "../dashboard/dashboard-server.ts";
import type { PageQuery } from "../dashboard/page-queries.ts";
import { ReaderThread } from "../dashboard/reader-thread.ts";
import { createRoutes } from "../dashboard/routes.ts";
import { QueryRunner } from "../export/query/query-runner.ts";
import type { CommitNews } from "../model/answers/ticks.ts";
import type { Clock } from "../runtime/clock.ts";
import type { HttpServer } from "../runtime/http-server.ts";
import type { Log } from "../runtime/log.ts";
import type { StartWorker } from "../runtime/thread.ts";
import type { Metrics } from "../telemetry/metrics.ts";

interface PagesOptions {
  /** Of the warehouse. */
  readonly path: string;
  readonly http: { readonly host: string; readonly port: number; readonly allowedHosts: readonly string[] };
  readonly view: DaemonView;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** When the service is asked again for what it must repeat. */
  readonly confirmation: PageQuery["confirmation"];
  readonly log: Log;
  readonly startWorker?: StartWorker | undefined;
}

/** The pages of the daemon, and the threads and processes that read the warehouse for them. */
export class PagesServer {
  readonly #options: PagesOptions;
  readonly #dashboardReader: ReaderThread;
  /** The pages of the market read more than those of the daemon, which must answer at once. */
  readonly #marketReader: ReaderThread;
  readonly #queries: QueryRunner;
  #server: HttpServer | undefined;
  /** Sends open pages what was committed. */
  notifyCommit: (news: readonly CommitNews[]) => void = () => {};

  constructor(options: PagesOptions) {
    const { path, clock, view, confirmation, log, startWorker } = options;
    const now = () => view.now();
    this.#options = options;
    this.#dashboardReader = new ReaderThread({ path, now, confirmation, clock, log, startWorker });
    this.#marketReader = new ReaderThread({ path, now, clock, log, startWorker });
    this.#queries = new QueryRunner({ path, clock, now });
  }

  /** Returns the address once the port is bound. */
  async listen(): Promise<string> {
    const { http, view, metrics, clock, log } = this.#options;
    this.#queries.removeLeftFolders();
    const { routes, live } = createRoutes({
      ...{ view, metrics, clock },
      reader: this.#dashboardReader,
      marketReader: this.#marketReader,
    });
    this.notifyCommit = (news) => live.notify(news);
    this.#server = await startDashboardServer({
      ...http,
      routes,
      queries: this.#queries,
      onError: (error) => log.error({ error: String(error) }, "dashboard page failed"),
    });
    return `${this.#server.origin}/`;
  }

  async close(): Promise<void> {
    this.#queries.close();
    await Promise.all([this.#server?.close(), this.#dashboardReader.close(), this.#marketReader.close()]);
  }
}
