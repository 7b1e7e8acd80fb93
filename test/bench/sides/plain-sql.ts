// The select that an experienced developer would write for a list of contacts, for SQLite and PostgreSQL.
import { COMPANIES, FITTING_INDEXES, SINGLE_INDEXES } from '../contacts'
import type { Filter, ListQuestion } from '../questions'

export type SqlDialect = 'sqlite' | 'postgres'
export type PlainSelect = { sql: string; countSql: string; values: (string | number)[] }

const COMPARISONS = { $lt: '<', $lte: '<=', $gt: '>', $gte: '>=', $ne: '<>' } as const

/** Notes have no column of their own. */
const toColumn = (field: Filter['field']) => (field === 'notes' ? "c.json ->> 'notes'" : `c.${field}`)
const toValue = (value: Filter['value']) => (typeof value === 'boolean' ? Number(value) : value)

/** Returns the statement with `?` for each value. */
export function toSelect(dialect: SqlDialect, question: ListQuestion): PlainSelect {
  const { filters, sort = '-created', words, isPopulated, workspace } = question
  let from = isPopulated ? 'contacts c join companies o on o.id = c.company' : 'contacts c'
  const conditions: string[] = []
  const values: (string | number)[] = []
  const add = (condition: string, ...some: (string | number)[]) => {
    conditions.push(condition)
    values.push(...some)
  }
  if (words && dialect === 'sqlite') {
    from = 'words f cross join contacts c on c.rowid = f.rowid'
    add('f.words match ?', words.join(' '))
  } else if (words?.length === 1) {
    // The planner does not know how rare a word is, so it is told to begin with the index of words.
    from = "(select * from contacts where words @@ to_tsquery('simple', ?) offset 0) c"
    values.push(words[0]!)
  } else if (words) add("c.words @@ to_tsquery('simple', ?)", words.join(' & '))
  if (workspace !== undefined) add('c.workspace = ?', workspace)
  for (const { field, operator, value } of filters) {
    if (operator === '$like' && field === 'name' && dialect === 'sqlite') {
      from = 'parts f cross join contacts c on c.rowid = f.rowid'
      add('f.parts match ?', `"${value}"`)
    } else if (operator === '$like')
      add(`${toColumn(field)} ${dialect === 'sqlite' ? 'like' : 'ilike'} ?`, `%${value}%`)
    else if (operator === '$in' || operator === '$nin') throw new Error(`The plain select has no ${operator}.`)
    else add(`c.${field} ${operator ? COMPARISONS[operator] : '='} ?`, toValue(value))
  }
  const where = conditions.length ? ` where ${conditions.join(' and ')}` : ''
  const field = sort.replace(/^-/, '')
  // The index of words keeps its rows in the order of creation.
  const order = from.startsWith('words') || from.startsWith('parts') ? 'f.rowid' : `c.${field}`
  const direction = sort.startsWith('-') ? ' desc' : ''
  const shown = isPopulated
    ? 'c.json, o.json "companyJson", c.company_start "companyStart", c.company_end "companyEnd"'
    : 'c.json'
  return {
    sql: `select ${shown} from ${from}${where} order by ${order}${direction} limit 20`,
    countSql: `select count(*) count from ${from}${where}`,
    values,
  }
}

/** Statements that create the tables, without indexes. */
export const createTables = (dialect: SqlDialect) => [
  'create table companies (id text primary key, json text)',
  `create table contacts (id text primary key, name text, email text, stage text, worth integer, company text,
    active integer, born text, workspace integer, created bigint, json text, company_start integer,
    company_end integer${dialect === 'postgres' ? ', words tsvector' : ''})`,
]

const createIndex = (fields: string) => `create index contacts_${fields.replaceAll(', ', '_')} on contacts (${fields})`
export const createSingleIndexes = () => SINGLE_INDEXES.map(createIndex)
export const createFittingIndexes = () => FITTING_INDEXES.map(createIndex)

/** Room for companies, which have a fixed number. */
export const companyNumbers = Array.from({ length: COMPANIES }, (_, n) => n)
