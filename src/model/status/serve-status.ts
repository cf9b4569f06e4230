/** A client of the websocket of `mds-sync serve`, as the dashboard shows it. */
export interface ConnectedClient {
  /** Empty without `serve.clients`. */
  readonly client_id: string;
  readonly address: string;
  readonly connected_at: string;
  readonly subscriptions: number;
  /** Messages sent to it. */
  readonly sent: number;
  /** It receives stored ticks, not the present. */
  readonly is_replay: boolean;
}

/** What was served so far, for the dashboard and the metrics. */
export interface ServeStatus {
  readonly address: string;
  readonly requests: number;
  /** Requests that were answered with 5xx. */
  readonly failures: number;
  /** Websocket messages sent. */
  readonly messages: number;
  /** Websocket clients that were dropped because they read too slowly. */
  readonly dropped: number;
  readonly clients: readonly ConnectedClient[];
}
