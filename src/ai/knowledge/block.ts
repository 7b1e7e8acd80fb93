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
