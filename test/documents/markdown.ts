export type CodeBlock = {
  /** What follows the opening fence, such as `sh no-run`. */
  info: string
  code: string
  /** The number of the line after the opening fence. */
  line: number
}

const FENCE = /^(\s*)(`{3,}|~{3,})(.*)$/

/** Returns every line of a document, and whether it stands in a block of code. */
function* readLines(text: string) {
  let fence: string | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const [, , mark = '', info = ''] = FENCE.exec(line) ?? []
    const isOpening = !fence && !!mark
    const isClosing = !!fence && mark.startsWith(fence) && !info.trim()
    yield { line, number: index + 1, isOpening, isClosing, isCode: !!fence && !isClosing, info: info.trim() }
    if (isOpening) fence = mark
    if (isClosing) fence = undefined
  }
}

/** Returns the blocks of code of a document, in their order. */
export function codeBlocksOf(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  for (const { line, number, isOpening, isCode, info } of readLines(text)) {
    if (isOpening) blocks.push({ info, code: '', line: number + 1 })
    if (isCode) blocks.at(-1)!.code += `${line}\n`
  }
  return blocks
}

/** Returns a document without its code, so that only what a reader sees as text is searched for links. */
const proseOf = (text: string) =>
  [...readLines(text)]
    .filter(({ isOpening, isClosing, isCode }) => !isOpening && !isClosing && !isCode)
    .map(({ line }) => line)
    .join('\n')

/** Returns the targets of all links and images, but for those in code. */
export function linksOf(text: string): string[] {
  const prose = proseOf(text).replaceAll(/`[^`\n]*`/g, '')
  const inline = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
  const html = [...prose.matchAll(/(?:href|src|srcset)="([^"]+)"/g)]
  return [...inline, ...html].map(([, target = '']) => target)
}

/** Returns the anchors that GitHub gives to the headings of a document. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(text).matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const slug = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`
    anchors.add(anchor)
  }
  return anchors
}
