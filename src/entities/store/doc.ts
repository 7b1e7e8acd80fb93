/** The properties of an entity. */
export type Doc = Record<string, unknown>

declare const computedMark: unique symbol
/** A document with its computed properties, as `computeFields` returns it; only such documents are stored. */
export type ComputedDoc = Doc & { [computedMark]: true }
