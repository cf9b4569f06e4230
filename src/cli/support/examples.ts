/** Examples of each command, for its help and docs/commands.md. */
export const commandExamples: Readonly<Record<string, readonly string[]>> = {
  run: ["mds-sync run --demo", "mds-sync run --config /etc/mds-sync/mds-sync.yaml"],
  init: ["mds-sync init --dir /etc/mds-sync --base-url https://… --ws-url wss://… --client-id me"],
  plan: ["mds-sync plan", "mds-sync plan --series BTC --from now-7d", "mds-sync plan --offline --json"],
  backfill: [
    "mds-sync backfill",
    "mds-sync backfill --stream index_ticks --series BTC --from now-7d",
    "mds-sync backfill --now",
  ],
  status: ["mds-sync status", "mds-sync status --watch", "mds-sync status --json | jq '.streams[].open'"],
  gaps: ["mds-sync gaps", "mds-sync gaps --series BTC --from 2026-05-01 --to 2026-06-01"],
  verify: ["mds-sync verify --sample 20", "mds-sync verify --ledger"],
  bars: [
    "mds-sync bars BTC --every 10m --from now-1d",
    "mds-sync bars BTC ETH SOL --every 1h --from 2026-05-01 --format csv --wide",
    "mds-sync bars BTC/USD --every 1d --from now-30d --tz Europe/Berlin --require-complete",
    "mds-sync bars BTC ETH --every 1m --from 2026-05-01 --to 2026-06-01 --out may.parquet",
  ],
  ticks: [
    "mds-sync ticks BTC --from now-1h",
    "mds-sync ticks BTC ETH --from 2026-05-01 --to 2026-05-02 --wide --format csv",
    "mds-sync ticks BLX --columns time,price_exact --format ndjson | head",
    "mds-sync ticks BTC --out btc.parquet --require-complete",
  ],
  asof: [
    "mds-sync asof now BTC ETH BLX",
    "mds-sync asof '2026-05-01 12:00' BTC BTC/USD --columns name,time,price_exact,is_complete",
    "mds-sync asof -7d BTC --require-complete --json",
  ],
  query: [
    "mds-sync query 'SELECT name, time, price FROM latest_index_ticks'",
    "mds-sync query \"SELECT * FROM index_ticks WHERE name = 'BTC' AND time >= '2026-05-01' AND time < '2026-05-02'\" --format csv",
    "mds-sync query --param from=@2026-05-01 - < question.sql",
    "mds-sync query --schema index_ticks",
  ],
  export: [
    "mds-sync export --to export",
    "mds-sync export --to export --since now-7d",
    "mds-sync export --to s3://bucket/market",
  ],
  share: ["mds-sync share", "mds-sync share --verify"],
  backup: ["mds-sync backup /backup/mds.sqlite"],
  restore: ["mds-sync restore /backup/mds.sqlite"],
  serve: ["mds-sync serve", "mds-sync serve --hash-secret < secret.txt > research.hash"],
  doctor: ["mds-sync doctor"],
  settings: ["mds-sync settings", "mds-sync settings --json"],
  simulate: ["mds-sync simulate --port 8080", "mds-sync simulate -- mds-sync plan"],
  completion: [
    "mds-sync completion bash > ~/.local/share/bash-completion/completions/mds-sync",
    "mds-sync completion zsh > ~/.zfunc/_mds-sync",
    "mds-sync completion fish > ~/.config/fish/completions/mds-sync.fish",
  ],
};
