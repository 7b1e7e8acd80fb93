import { sha256 } from '../core/crypto'

const MAX_STEM_BYTES = 200 // most file systems allow 255, and a suffix follows
const ABBREVIATED_BYTES = 160

/** Names of devices, which Windows does not allow as file names, with or without a suffix. */
const RESERVED_NAMES = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i
const UNSAFE_CHARACTERS = /[\p{C}/\\:*?"<>|%]|^[. ]|[. ]$/gu

/**
 * Returns labels of resources, oldest first: their names, with `~2` and so on after the first of a name. Labels tell
 * resources of a kind apart, in file names and references.
 */
export function assignLabels(names: string[], taken: Iterable<string> = []): string[] {
  const used = new Set(taken)
  return names.map((name) => {
    const base = abbreviate(name)
    let label = base
    for (let number = 2; used.has(label); number++) label = `${base}~${number}`
    used.add(label)
    return label
  })
}

/** A long name is cut, and told apart by its hash. */
function abbreviate(name: string): string {
  if (byteLength(encodeStem(name)) <= MAX_STEM_BYTES - 10) return name
  const characters = [...name]
  while (byteLength(encodeStem(characters.join(''))) > ABBREVIATED_BYTES) characters.pop()
  return `${characters.join('')}~${sha256(name).slice(0, 8)}`
}

/**
 * Returns the names of files, without a suffix, for labels of one kind. Characters that a file system may refuse are
 * percent-encoded, and so are capitals of labels that differ only by them, because not every file system does.
 */
export function toFileStems(labels: Iterable<string>): Map<string, string> {
  const all = [...labels]
  const counts = new Map<string, number>()
  for (const label of all) counts.set(fold(label), (counts.get(fold(label)) ?? 0) + 1)
  return new Map(
    all.map((label) => {
      const stem = encodeStem(label)
      return [label, counts.get(fold(label))! > 1 ? stem.replace(/%[0-9A-F]{2}|\p{Lu}/gu, encodeCapital) : stem]
    }),
  )
}

/** Returns the label of a file, or undefined when its name is not percent-encoded as it should be. */
export function toLabel(stem: string): string | undefined {
  try {
    // Some file systems decompose letters with accents.
    return decodeURIComponent(stem.normalize('NFC'))
  } catch {
    return
  }
}

const fold = (label: string) => label.normalize('NFC').toLowerCase()
const byteLength = (text: string) => Buffer.byteLength(text)
const percentEncode = (text: string) =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
const encodeCapital = (text: string) => (text.startsWith('%') ? text : percentEncode(text))

function encodeStem(label: string): string {
  const safe = label.replace(UNSAFE_CHARACTERS, percentEncode).replace(RESERVED_NAMES, encodeFirst)
  return label === label.normalize('NFC') ? safe : safe.replace(/[^\x20-\x7e]/gu, percentEncode)
}

const encodeFirst = (name: string) => percentEncode(name[0]!) + name.slice(1)
