// The questions of docs/cookbook.md as starting points.

type Question = { readonly title: string; readonly sql: string };

export function parseCookbook(markdown: string): Question[] {
  return markdown
    .split(/^## (?=\d+\. )/m)
    .slice(1)
    .flatMap((section) => {
      const title = section.slice(0, section.indexOf("\n")).trim();
      const sql = /^```sql\n-- SQLite[^\n]*\n(.*?)^```/ms.exec(section)?.[1];
      return sql === undefined ? [] : [{ title, sql: sql.trim() }];
    });
}

/** The names of the parameters of a statement, such as `from` of `:from`, without those in texts and comments. */
export function findParameters(sql: string): string[] {
  const bare = sql.replaceAll(/'[^']*(?:'|$)|"[^"]*(?:"|$)|--[^\n]*|\/\*.*?(?:\*\/|$)/gs, " ");
  return [...new Set([...bare.matchAll(/(?<![:\w]):([a-z_]\w*)/gi)].map(([, name = ""]) => name))];
}
