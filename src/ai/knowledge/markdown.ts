import type { Block } from './block'

/** Characters: longer text is split into several blocks, so that none takes long to process. */
const MAX_BLOCK_LENGTH = 8_192
/** Characters after which an empty block lets the reader pause. Each line costs some more. */
const CHARACTERS_BETWEEN_PAUSES = 65_536
const COST_PER_LINE = 32
const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$/
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/

/** Yields the blocks of a Markdown text (block structure of CommonMark), or the paragraphs of a plain text. */
export function* readMarkdownBlocks(text: string): Generator<Block> {
  const headings: string[] = []
  let [lines, startsSection, fence] = [[] as string[], false, '']
  let size = 0
  const block = (isCode = false): Block[] => {
    const text = lines.join('\n').trim()
    ;[lines, size] = [[], 0]
    if (!text) return []
    const finished = { text, headings: headings.filter(Boolean).join(' > '), isCode, startsSection }
    startsSection = false
    return [finished]
  }
  const addHeading = (depth: number, title: string) => {
    headings.length = depth - 1
    for (let above = 0; above < depth - 1; above++) headings[above] ??= ''
    headings.push(title)
    startsSection = true
  }
  let charactersSincePause = 0
  for (const line of readLines(text)) {
    charactersSincePause += line.length + COST_PER_LINE
    if (charactersSincePause > CHARACTERS_BETWEEN_PAUSES) {
      yield { text: '', headings: '' }
      charactersSincePause = 0
    }
    if (size > MAX_BLOCK_LENGTH) yield* block(!!fence)
    size += line.length
    if (fence) {
      lines.push(line)
      const [, closing = ''] = FENCE.exec(line) ?? []
      if (!closing.startsWith(fence) || line.trim() !== closing) continue
      fence = ''
      yield* block(true)
      continue
    }
    const [, opening] = FENCE.exec(line) ?? []
    const [, marks, title] = HEADING.exec(line) ?? []
    if (opening) {
      yield* block()
      fence = opening
      lines.push(line)
    } else if (marks) {
      yield* block()
      addHeading(marks.length, title!)
    } else if (lines.length === 1 && UNDERLINE.test(line) && !/^\s*[-*+|>]/.test(lines[0]!)) {
      const [title = ''] = lines
      lines = []
      addHeading(line.trim().startsWith('=') ? 1 : 2, title.trim())
    } else if (line.trim()) lines.push(line)
    else yield* block()
  }
  yield* block(!!fence)
}

function* readLines(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    const maxEnd = start + MAX_BLOCK_LENGTH
    if (end > maxEnd) {
      const space = text.slice(start, maxEnd).lastIndexOf(' ')
      const cut = space > 0 ? start + space + 1 : text.slice(start, maxEnd).isWellFormed() ? maxEnd : maxEnd - 1
      yield text.slice(start, cut)
      start = cut
      continue
    }
    yield text.slice(start, text[end - 1] === '\r' ? end - 1 : end)
    start = end + 1
  }
}
