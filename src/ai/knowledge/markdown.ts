import type { Block } from './chunking'

/** Characters: what is longer comes in several blocks, so that none takes long. */
const LONGEST = 8_192
/** Characters after which an empty block lets whoever reads have a pause; a line counts as some more. */
const PAUSE = 65_536
const LINE = 32
const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$/
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/

/** The blocks of a Markdown text (CommonMark, as far as blocks go); of a plain one its paragraphs. */
export function* markdownBlocks(text: string): Generator<Block> {
  const headings: string[] = []
  let [lines, begins, fence] = [[] as string[], false, '']
  let size = 0
  const place = () => headings.filter(Boolean).join(' > ')
  const block = (code = false): Block[] => {
    const text = lines.join('\n').trim()
    ;[lines, size] = [[], 0]
    if (!text) return []
    const made = { text, place: place(), code, begins }
    begins = false
    return [made]
  }
  const under = (depth: number, title: string) => {
    headings.length = depth - 1
    for (let above = 0; above < depth - 1; above++) headings[above] ??= ''
    headings.push(title)
    begins = true
  }
  let read = 0
  for (const line of linesOf(text)) {
    read += line.length + LINE
    if (read > PAUSE) {
      yield { text: '', place: '' }
      read = 0
    }
    if (size > LONGEST) yield* block(!!fence)
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
      under(marks.length, title!)
    } else if (lines.length === 1 && UNDERLINE.test(line) && !/^\s*[-*+|>]/.test(lines[0]!)) {
      const [title = ''] = lines
      lines = []
      under(line.trim().startsWith('=') ? 1 : 2, title.trim())
    } else if (line.trim()) lines.push(line)
    else yield* block()
  }
  yield* block(!!fence)
}

function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    const most = at + LONGEST
    if (end > most) {
      const space = text.slice(at, most).lastIndexOf(' ')
      const cut = space > 0 ? at + space + 1 : text.slice(at, most).isWellFormed() ? most : most - 1
      yield text.slice(at, cut)
      at = cut
      continue
    }
    yield text.slice(at, text[end - 1] === '\r' ? end - 1 : end)
    at = end + 1
  }
}
