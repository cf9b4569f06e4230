import { serveScans } from "./serve-scans.ts";

// The entry of the scan thread.
serveScans();
