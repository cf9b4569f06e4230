import { serveIngestInProcess } from "../support/ingest/in-process-ingest.ts";

// Stryker neither activates mutants nor measures coverage in a worker thread.
serveIngestInProcess();
