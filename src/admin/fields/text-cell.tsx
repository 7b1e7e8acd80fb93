import type { CellProps } from './field-kind'

const MAX_SHOWN_CHARACTERS = 200

/** A text on one line, cut where the column ends. */
export function TextCell({ value }: CellProps) {
  const text = String(value)
  return <span title={text.length > 40 ? text.slice(0, 2_000) : undefined}>{text.slice(0, MAX_SHOWN_CHARACTERS)}</span>
}
