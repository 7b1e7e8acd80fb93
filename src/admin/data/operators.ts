/** The operators of the query language. `eq` is written without one. */
export const operators = ['eq', '$ne', '$lt', '$lte', '$gt', '$gte', '$in', '$nin', '$exists', '$like'] as const
export type Operator = (typeof operators)[number]

/** How an operator reads between a field and a value. */
export const OPERATOR_WORDS: Record<Operator, string> = {
  eq: 'is',
  $ne: 'is not',
  $lt: 'is less than',
  $lte: 'is at most',
  $gt: 'is more than',
  $gte: 'is at least',
  $in: 'is one of',
  $nin: 'is none of',
  $exists: 'has a value',
  $like: 'contains',
}

/** The words for dates and times. */
export const TIME_OPERATOR_WORDS: Partial<Record<Operator, string>> = {
  $lt: 'is before',
  $lte: 'is not after',
  $gt: 'is after',
  $gte: 'is not before',
}

/** The words for fields with several values. */
export const VALUES_OPERATOR_WORDS: Partial<Record<Operator, string>> = {
  eq: 'has',
  $ne: 'has not',
  $in: 'has one of',
  $nin: 'has none of',
}

export const TEXT_OPERATORS = ['eq', '$like', '$ne', '$in', '$nin', '$exists', '$gte', '$lte', '$gt', '$lt'] as const
export const ORDER_OPERATORS = ['eq', '$gte', '$lte', '$gt', '$lt', '$ne', '$in', '$nin', '$exists'] as const
export const FLAG_OPERATORS = ['eq', '$ne', '$exists'] as const
export const REFERENCE_OPERATORS = ['eq', '$ne', '$in', '$nin', '$exists'] as const
export const EXISTENCE_OPERATORS = ['$exists'] as const
