/** The bundler turns a page of Markdown into its text. */
declare module "*.md" {
  const text: string;
  export default text;
}
