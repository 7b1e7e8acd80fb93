import { parseJson } from '../../core/body'
import { jsonBlocks } from './json'
import { markdownBlocks } from './markdown'

/** What stands together in a file, such as a paragraph, and under which headings or in which part of it. */
export type Block = {
  text: string
  /** Where it is, such as `Guide > Installing`. */
  place: string
  /** Whether its lines are to be kept as they are. */
  code?: boolean
  /** Whether a part of the file begins with it. */
  begins?: boolean
}

/** Characters: a page's paragraph or two, which an embedding still tells apart. */
const MOST = 1_200
/** A chunk of less goes on where a new part begins. */
const LEAST = 300
/** What a chunk repeats of the one before, where a long paragraph is cut. */
const OVERLAP = 150
const PLACE = 200
/** In which sentences are looked for at once. */
const WINDOW = 32_768

/**
 * The pieces of a file by which it is found, in their order: paragraphs, lists and blocks of code that stand together, up
 * to some 1,200 characters, each with the headings that it stands under. Texts are read as Markdown, unless they are JSON
 * by their name. They are made as they are asked for, so that whoever has a large file can let others have a turn: where
 * there is none for a while, an empty text comes instead.
 */
export function* chunksOf(content: unknown, name = ''): Generator<string> {
  let [pieces, size, place] = [[] as string[], 0, '']
  const whole = () => {
    const text = pieces.join('\n\n')
    return place ? `${place}\n\n${text}` : text
  }
  for (const block of blocksOf(content, name)) {
    if (!block.text) {
      yield ''
      continue
    }
    const moves = block.begins && size >= LEAST
    if (size && (moves || size + block.text.length > MOST)) {
      yield whole()
      ;[pieces, size] = [[], 0]
    }
    if (!size) place = tail(block.place)
    if (block.text.length > MOST) {
      for (const piece of block.code ? lines(block.text) : sentences(block.text))
        yield place && piece ? `${place}\n\n${piece}` : piece
      continue
    }
    pieces.push(block.text)
    size += block.text.length + 2
  }
  if (size) yield whole()
}

function blocksOf(content: unknown, name: string): Iterable<Block> {
  if (typeof content !== 'string') return jsonBlocks(content, MOST)
  const parsed = /\.json$/i.test(name.trim()) ? json(content) : undefined
  return parsed === undefined ? markdownBlocks(content) : jsonBlocks(parsed, MOST)
}

/** Undefined for what is no JSON after all. */
function json(text: string): unknown {
  try {
    return parseJson(text)
  } catch {}
}

/** The end says most. */
const tail = (place: string) => (place.length > PLACE ? `…${whole(place.slice(-PLACE))}` : place)

/** Lines that stand together up to the size; of a line that is longer, parts. */
function* lines(text: string): Generator<string> {
  let piece = ''
  for (const line of text.split('\n'))
    for (const part of parts(line, MOST)) {
      if (piece && piece.length + part.length >= MOST) {
        yield piece
        piece = ''
      }
      piece = piece ? `${piece}\n${part}` : part
    }
  if (piece.trim()) yield piece
}

/** Where a sentence begins after another, in most languages, or a line. */
const SENTENCE = /(?=\S)(?<=[.!?…]["'”’)\]]{0,3}\s{1,3})|(?<=[。！？\n])/u

/** Sentences up to the size, each time beginning with the end of those before. */
function* sentences(text: string): Generator<string> {
  let piece = ''
  for (const window of parts(text, WINDOW))
    for (const sentence of window.split(SENTENCE))
      for (const part of parts(sentence, MOST - OVERLAP)) {
        if (piece && piece.length + part.length > MOST) {
          yield piece.trim()
          piece = overlapOf(piece)
        }
        piece += part
      }
  if (piece.trim()) yield piece.trim()
}

/** The last sentence if it is short, else the last words. */
function overlapOf(piece: string): string {
  const end = piece.slice(-OVERLAP)
  const from = end.split(SENTENCE)[0]!.length
  if (from < end.length) return end.slice(from)
  const space = end.search(/\s/)
  return space < 0 ? '' : end.slice(space + 1)
}

/** A text that no sentence ends in is cut between words, or else between letters. */
function* parts(text: string, most: number): Generator<string> {
  let rest = text
  while (rest.length > most) {
    const space = rest.lastIndexOf(' ', most - 1)
    const at = space > most / 2 ? space + 1 : most
    const cut = rest.slice(0, at).isWellFormed() ? at : at - 1
    yield rest.slice(0, cut)
    rest = rest.slice(cut)
  }
  if (rest) yield rest
}

/** Without the half of a letter at its beginning. */
const whole = (text: string) => (text.isWellFormed() ? text : text.slice(1))
