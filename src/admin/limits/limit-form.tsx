import type { ChosenRateLimits, RateLimits } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import classes from './limit-form.module.css'

const CALLERS = { guests: 'guest', users: 'user' } as const
const KINDS = { reads: 'Reads', writes: 'Writes', costly: 'Costly calls' } as const
const callers = Object.keys(CALLERS) as (keyof typeof CALLERS)[]
const kinds = Object.keys(KINDS) as (keyof typeof KINDS)[]

const limitKeys = kinds.flatMap((kind) => callers.map((caller) => ({ kind, caller, key: `${caller}/${kind}` })))

const toFields = (allowed: RateLimits, describe: (limit: string) => string): FormField[] =>
  limitKeys.map(({ kind, caller, key }) => ({
    ...{ key, type: 'integer', required: false },
    title: `${KINDS[kind]} per ${CALLERS[caller]}`,
    description: describe(allowed[caller][kind].toLocaleString()),
  }))

const toValues = (chosen: ChosenRateLimits): FormValues =>
  Object.fromEntries(limitKeys.map(({ kind, caller, key }) => [key, chosen[caller]?.[kind]]))

const toChosen = (values: FormValues): Required<ChosenRateLimits> => {
  const valuesOf = (caller: keyof typeof CALLERS) =>
    Object.fromEntries(
      kinds.flatMap((kind) => {
        const value = values[`${caller}/${kind}`]
        return typeof value === 'number' ? [[kind, value]] : []
      }),
    )
  return { guests: valuesOf('guests'), users: valuesOf('users') }
}

type LimitFormProps = {
  id: string
  chosen: ChosenRateLimits
  /** What applies where nothing is chosen. */
  allowed: RateLimits
  /** Returns the sentence below an input. */
  describe(limit: string): string
  draftKey: string
  save(chosen: Required<ChosenRateLimits>): Promise<unknown>
  onSaved(): void
}

/** A form for how many requests a guest and a user may make per minute. */
export const LimitForm = ({ id, chosen, allowed, describe, draftKey, save, onSaved }: LimitFormProps) => (
  <div className={classes.pairs}>
    <FieldForm
      id={id}
      fields={toFields(allowed, describe)}
      before={toValues(chosen)}
      draftKey={draftKey}
      save={(_changes, values) => save(toChosen(values))}
      onSaved={onSaved}
    />
  </div>
)
