// The questions of docs/cookbook.md as starting points.

/** Returns [{ title, sql }]: each question with its SQL for SQLite. */
export function parseCookbook(markdown) {
  return markdown
    .split(/^## (?=\d+\. )/m)
    .slice(1)
    .flatMap((section) => {
      const title = section.slice(0, section.indexOf("\n")).trim();
      const blocks = [...section.matchAll(/^```sql\n-- (SQLite[^\n]*)\n(.*?)^```/gms)];
      return blocks.length > 0 ? [{ title, sql: blocks[0][2].trim() }] : [];
    });
}

/** The names of the parameters of a statement, such as `from` of `:from`, without those in texts and comments. */
export function findParameters(sql) {
  const bare = sql.replaceAll(/'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\/\*.*?\*\//gs, " ");
  return [...new Set([...bare.matchAll(/(?<![:\w]):([a-z_]\w*)/gi)].map(([, name]) => name))];
}
