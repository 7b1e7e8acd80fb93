import { parseJson } from '../../core/body'
import type { Block } from './block'
import { readJsonBlocks } from './json'
import { readMarkdownBlocks } from './markdown'

/** Characters: one or two paragraphs, short enough for a specific embedding. */
const MAX_CHUNK_LENGTH = 1_200
/** Characters: a shorter chunk is continued when a new section begins. */
const MIN_CHUNK_LENGTH = 300
/** Characters of the previous chunk that are repeated when a long paragraph is split. */
const OVERLAP_LENGTH = 150
const MAX_HEADINGS_LENGTH = 200
/** Characters that are split into sentences at a time. */
const SENTENCE_WINDOW_LENGTH = 32_768

/**
 * Yields the chunks of a file for the search, in their order: consecutive paragraphs, lists and code blocks of up to about
 * 1,200 characters in all, with the headings above them. Texts are parsed as Markdown, or as JSON if `name` ends in `.json`.
 * Chunks are made lazily, so that the caller can let other work run while it reads a large file: if there is no chunk for
 * a while, an empty text is yielded instead.
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
    const startsNewChunk = block.startsSection && size >= MIN_CHUNK_LENGTH
    if (size && (startsNewChunk || size + block.text.length > MAX_CHUNK_LENGTH)) {
      yield formatChunk()
      ;[pieces, size] = [[], 0]
    }
    if (!size) headings = shortenHeadings(block.headings)
    if (block.text.length > MAX_CHUNK_LENGTH) {
      for (const piece of block.isCode ? splitLines(block.text) : splitSentences(block.text))
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

/** Returns undefined for invalid JSON. */
function parseJsonOrUndefined(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    // Not JSON: read as text.
  }
}

/** Keeps the end of long headings, which is the most specific part. */
const shortenHeadings = (headings: string) =>
  headings.length > MAX_HEADINGS_LENGTH ? `…${dropHalfCharacter(headings.slice(-MAX_HEADINGS_LENGTH))}` : headings

/** Yields groups of lines up to the maximum length. A longer line is split. */
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

/** Matches where a sentence begins after another one, in most languages, or where a line begins. */
const SENTENCE_START = /(?=\S)(?<=[.!?…]["'”’)\]]{0,3}\s{1,3})|(?<=[。！？\n])/u

/** Yields groups of sentences up to the maximum length. Each group begins with the end of the previous one. */
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

/** Returns the last sentence if it is short, else the last words. */
function takeOverlap(piece: string): string {
  const end = piece.slice(-OVERLAP_LENGTH)
  const sentenceStart = end.split(SENTENCE_START)[0]!.length
  if (sentenceStart < end.length) return end.slice(sentenceStart)
  const space = end.search(/\s/)
  return space < 0 ? '' : end.slice(space + 1)
}

/** Splits a text at spaces, or between characters if there is no space. */
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

/** Removes half of a surrogate pair at the beginning. */
const dropHalfCharacter = (text: string) => (text.isWellFormed() ? text : text.slice(1))
