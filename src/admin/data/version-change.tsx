import { Anchor, Text } from '@mantine/core'
import { useState } from 'react'
import type { Field } from '../api/schema'
import { ValueCell } from '../fields/value-cell'
import { CodeDiff } from '../ui/code-diff'
import { formatMoment } from '../ui/relative-time'
import { OwnerLabel } from './system-fields'
import classes from './version-change.module.css'

const MAX_LINE_CHARACTERS = 80

/** The values of a field before and after a version; null where there was none. */
type ChangedValue = { from: unknown; to: unknown }

/** Returns a value as the lines in which two of them are compared. */
function toLines(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map((each) => toLines(each)).join('\n')
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value)
}

/** Returns whether a value is more than what a line shows. */
const isLong = (value: unknown) => {
  const lines = toLines(value)
  return lines.length > MAX_LINE_CHARACTERS || lines.includes('\n')
}

/** A value as people read it without what is around it: times do not move on, and yes and no are words. */
function VersionValue({ field, value }: { field: Field; value: unknown }) {
  if (value === null || value === undefined) return <span className={classes.none}>no value</span>
  if (field.key === 'user' || field.key === 'workspace') return <OwnerLabel field={field} id={String(value)} />
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (field.type === 'datetime' && typeof value === 'string') return formatMoment(value)
  return <ValueCell field={{ ...field, multi: Array.isArray(value) }} value={value} />
}

/** What a version did to one field, within a `dl`: the former value and the new one, and line by line where they are long. */
export function VersionChange({ field, change: { from, to } }: { field: Field; change: ChangedValue }) {
  const [isCompared, setIsCompared] = useState(false)
  const name = field.title || field.key
  return (
    <div className={classes.change}>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>
        {from !== null && (
          <>
            <del className={classes.former} dir="auto">
              <VersionValue field={field} value={from} />
            </del>{' '}
            <span aria-hidden>→</span>{' '}
          </>
        )}
        <ins className={classes.present} dir="auto">
          <VersionValue field={field} value={to} />
        </ins>
        {from !== null && to !== null && (isLong(from) || isLong(to)) && (
          <Text size="xs" component="div">
            <Anchor component="button" type="button" size="xs" onClick={() => setIsCompared(!isCompared)}>
              {isCompared ? 'Hide the comparison' : 'Compare line by line'}
            </Anchor>
          </Text>
        )}
        {isCompared && (
          <CodeDiff
            label={`${name}, before and after`}
            language={typeof to === 'object' && !Array.isArray(to) ? 'json' : 'text'}
            before={toLines(from)}
            after={toLines(to)}
          />
        )}
      </dd>
    </div>
  )
}
