/** A fenced block of a page, and the output that the page shows below it. */
export interface PageBlock {
  /** The number of the line at which it begins, for messages. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The ```text block that follows; undefined: the page shows none. */
  readonly output: string | undefined;
}

const fence = /^```(\w+)\n(.*?)^```\n/gms;

/** The blocks of a page in its order. A ```text block is the output of the block before it. */
export function parseBlocks(page: string): PageBlock[] {
  const all = [...page.matchAll(fence)].map((match) => ({
    line: page.slice(0, match.index).split("\n").length,
    language: match[1] ?? "",
    code: match[2] ?? "",
  }));
  return all.flatMap((block, at) => {
    if (block.language === "text") return [];
    const next = all[at + 1];
    return [{ ...block, output: next?.language === "text" ? next.code : undefined }];
  });
}

/** Runs each block by its language, in order, and returns the page with the outputs in place of those that it shows. */
export async function replaceOutputs(
  page: string,
  run: (block: PageBlock) => Promise<string>,
): Promise<string> {
  const outputs: string[] = [];
  for (const block of parseBlocks(page)) {
    const output = await run(block);
    if (block.output !== undefined) outputs.push(output);
  }
  let at = 0;
  return page.replaceAll(fence, (whole, language: string) => {
    if (language !== "text") return whole;
    return `\`\`\`text\n${outputs[at++] ?? ""}\`\`\`\n`;
  });
}
