/** A text as a literal of SQL, in every engine that we use. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The name of a table or column, which may contain anything. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
