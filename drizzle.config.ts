import { defineConfig } from "drizzle-kit";

/** `npx drizzle-kit generate` writes the next migration; STRICT and WITHOUT ROWID are then added to it by hand. */
export default defineConfig({
  dialect: "sqlite",
  schema: "./src/warehouse/schema/{rows,lookups,coverage}.ts",
  out: "./migrations",
});
