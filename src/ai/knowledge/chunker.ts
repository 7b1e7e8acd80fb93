import { parseJson } from '../../core/body'
import type { Block } from './block'
import { readJsonBlocks } from './json'
import { readMarkdownBlocks } from './markdown'

/** Characters: a page's paragraph or two, which an embedding still tells apart. */
const MAX_CHUNK_LENGTH = 1_200
/** A chunk of less goes on where a new part begins. */
const MIN_CHUNK_LENGTH = 300
/** What a chunk repeats of the one before, where a long paragraph is cut. */
const OVERLAP_LENGTH = 150
const MAX_HEADINGS_LENGTH = 200
/** In which sentences are looked for at once. */
const SENTENCE_WINDOW_LENGTH = 32_768

/**
 * The pieces of a file by which it is found, in their order: paragraphs, lists and blocks of code that stand together, up
 * to some 1,200 characters, each with the headings that it stands under. Texts are read as Markdown, unless they are JSON
 * by their name. They are made as they are asked for, so that whoever has a large file can let others have a turn: where
 * there is none for a while, an empty text comes instead.
 */
export function* splitIntoChunks(content: unknown, name = ''): Generator<string> {
  let [pieces, size, headings] = [[] as string[], 0, '']
  const formatChunk = () => {
    const text = pieces.join('\n\n')
    return headings ? `${headings}\n\n${text}` : text
  }
  for (const block of readBlocks(content, name)) {
    if (!block.text) {
      yield ''
      continue
    }
    const startsNewChunk = block.begins && size >= MIN_CHUNK_LENGTH
    if (size && (startsNewChunk || size + block.text.length > MAX_CHUNK_LENGTH)) {
      yield formatChunk()
      ;[pieces, size] = [[], 0]
    }
    if (!size) headings = shortenHeadings(block.place)
    if (block.text.length > MAX_CHUNK_LENGTH) {
      for (const piece of block.code ? splitLines(block.text) : splitSentences(block.text))
        yield headings && piece ? `${headings}\n\n${piece}` : piece
      continue
    }
    pieces.push(block.text)
    size += block.text.length + 2
  }
  if (size) yield formatChunk()
}

function readBlocks(content: unknown, name: string): Iterable<Block> {
  if (typeof content !== 'string') return readJsonBlocks(content, MAX_CHUNK_LENGTH)
  const parsed = /\.json$/i.test(name.trim()) ? parseJsonOrUndefined(content) : undefined
  return parsed === undefined ? readMarkdownBlocks(content) : readJsonBlocks(parsed, MAX_CHUNK_LENGTH)
}

/** Undefined for what is no JSON after all. */
function parseJsonOrUndefined(text: string): unknown {
  try {
    return parseJson(text)
  } catch {}
}

/** The end says most. */
const shortenHeadings = (headings: string) =>
  headings.length > MAX_HEADINGS_LENGTH ? `…${dropHalfCharacter(headings.slice(-MAX_HEADINGS_LENGTH))}` : headings

/** Lines that stand together up to the size; of a line that is longer, parts. */
function* splitLines(text: string): Generator<string> {
  let piece = ''
  for (const line of text.split('\n'))
    for (const part of splitAtSpaces(line, MAX_CHUNK_LENGTH)) {
      if (piece && piece.length + part.length >= MAX_CHUNK_LENGTH) {
        yield piece
        piece = ''
      }
      piece = piece ? `${piece}\n${part}` : part
    }
  if (piece.trim()) yield piece
}

/** Where a sentence begins after another, in most languages, or a line. */
const SENTENCE_START = /(?=\S)(?<=[.!?…]["'”’)\]]{0,3}\s{1,3})|(?<=[。！？\n])/u

/** Sentences up to the size, each time beginning with the end of those before. */
function* splitSentences(text: string): Generator<string> {
  let piece = ''
  for (const window of splitAtSpaces(text, SENTENCE_WINDOW_LENGTH))
    for (const sentence of window.split(SENTENCE_START))
      for (const part of splitAtSpaces(sentence, MAX_CHUNK_LENGTH - OVERLAP_LENGTH)) {
        if (piece && piece.length + part.length > MAX_CHUNK_LENGTH) {
          yield piece.trim()
          piece = takeOverlap(piece)
        }
        piece += part
      }
  if (piece.trim()) yield piece.trim()
}

/** The last sentence if it is short, else the last words. */
function takeOverlap(piece: string): string {
  const end = piece.slice(-OVERLAP_LENGTH)
  const sentenceStart = end.split(SENTENCE_START)[0]!.length
  if (sentenceStart < end.length) return end.slice(sentenceStart)
  const space = end.search(/\s/)
  return space < 0 ? '' : end.slice(space + 1)
}

/** A text that no sentence ends in is cut between words, or else between letters. */
function* splitAtSpaces(text: string, maxLength: number): Generator<string> {
  let rest = text
  while (rest.length > maxLength) {
    const space = rest.lastIndexOf(' ', maxLength - 1)
    const cutIndex = space > maxLength / 2 ? space + 1 : maxLength
    const cut = rest.slice(0, cutIndex).isWellFormed() ? cutIndex : cutIndex - 1
    yield rest.slice(0, cut)
    rest = rest.slice(cut)
  }
  if (rest) yield rest
}

/** Without the half of a letter at its beginning. */
const dropHalfCharacter = (text: string) => (text.isWellFormed() ? text : text.slice(1))
