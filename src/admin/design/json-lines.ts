const TOKEN = /[{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+/g
const escapePart = (part: string) => part.replaceAll('~', '~0').replaceAll('/', '~1')

/** Returns the line of each part of a JSON text by its JSON pointer. */
export function mapPointers(text: string): Map<string, number> {
  const lines = new Map<string, number>([['', 1]])
  /** The open objects and arrays: their pointer, and the key or index of the current part. */
  const open: { pointer: string; isArray: boolean; part: string | number; isKeyNext: boolean }[] = []
  let [line, position] = [1, 0]
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    line += text.slice(position, index).split('\n').length - 1
    position = index
    const inner = open.at(-1)
    if (token === '}' || token === ']') open.pop()
    else if (token === ',' && inner) {
      if (inner.isArray) inner.part = Number(inner.part) + 1
      else inner.isKeyNext = true
    } else if (token === ':') continue
    else if (inner?.isKeyNext) {
      inner.part = escapePart(JSON.parse(token))
      inner.isKeyNext = false
      lines.set(`${inner.pointer}/${inner.part}`, line)
    } else {
      const pointer = inner ? `${inner.pointer}/${inner.part}` : ''
      if (!lines.has(pointer)) lines.set(pointer, line)
      if (token === '{') open.push({ pointer, isArray: false, part: '', isKeyNext: true })
      if (token === '[') open.push({ pointer, isArray: true, part: 0, isKeyNext: false })
    }
  }
  return lines
}

/** Returns the line of a JSON pointer, or of the nearest part around it. */
export function findLine(lines: Map<string, number>, pointer: string): number {
  const line = lines.get(pointer)
  return line ?? (pointer ? findLine(lines, pointer.slice(0, pointer.lastIndexOf('/'))) : 1)
}
