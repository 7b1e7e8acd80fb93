/** A part of a file that belongs together, such as a paragraph. An empty `text` is a pause, in which other work may run. */
export type Block = {
  text: string
  /** The headings above it, such as `Guide > Installing`. */
  headings: string
  /** Whether its lines must be kept as they are. */
  isCode?: boolean
  /** Whether it begins a section of the file. */
  startsSection?: boolean
}
