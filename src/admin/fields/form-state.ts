import { useRef, useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../api/drafts'
import { type Draft, type FormField, type FormValues, mergeValues, toChanges, toDraft, toValues } from './form-values'

type Typed = {
  values: FormValues
  /** What the values are compared with. */
  base: FormValues
  /** The thing as it was last shown. */
  seen: FormValues
  /** What others saved in fields that were typed in, too. */
  conflicts: FormValues
  /** The fields that others changed. */
  changedKeys: string[]
  /** What is being saved. Until the answer is there, changes wait: they may be this or those of others. */
  sent?: FormValues
  /** The server stored what was sent. The next change of the thing is this, as the server completed it. */
  isStored?: boolean
}

/** Returns the values with which a form begins: what was typed before its tab was closed lies over the thing. */
function startForm(fields: readonly FormField[], before: FormValues | undefined, draft: Draft | undefined): Typed {
  const base = toValues(fields, before)
  if (!draft?.changes) return { values: base, base, seen: base, conflicts: {}, changedKeys: [] }
  const known = Object.fromEntries(Object.entries(draft.changes).filter(([key]) => key in base))
  const merged = mergeValues({ ...base, ...known }, { ...base, ...draft.base }, base)
  return { ...merged, base, seen: base }
}

/** Returns a form after the server stored what was sent; what was typed since then stays. */
function adoptSaved({ values }: Typed, sent: FormValues, current: FormValues) {
  const typedSince = toChanges(values, { ...values, ...sent })
  const kept = Object.fromEntries(Object.keys(typedSince).map((key) => [key, values[key]]))
  return { values: { ...values, ...current, ...kept }, conflicts: {}, changedKeys: [] }
}

/** Returns a form after somebody else changed the thing. */
function followOthers(typed: Typed, current: FormValues) {
  const { values, conflicts, changedKeys } = mergeValues({ ...current, ...typed.values }, typed.base, current)
  const open = Object.fromEntries(Object.entries(typed.conflicts).filter(([key]) => !changedKeys.includes(key)))
  return { values, conflicts: { ...open, ...conflicts }, changedKeys }
}

/** What is typed into a form. It follows the thing when somebody else changes it, and keeps what was typed. */
export function useFormState(fields: readonly FormField[], before: FormValues | undefined, draftKey: string) {
  const [draft] = useState(() => readDraft<Draft>(draftKey))
  const [isRestored, setIsRestored] = useState(!!draft?.changes)
  const [typed, setTyped] = useState(() => startForm(fields, before, draft))
  const current = toValues(fields, before)
  const isWaiting = typed.sent && !typed.isStored
  if (before && !isWaiting && Object.keys(toChanges(current, typed.seen)).length > 0) {
    const next = typed.sent ? adoptSaved(typed, typed.sent, current) : followOthers(typed, current)
    setTyped({ ...next, base: current, seen: current })
  }
  // Two changes before the next rendering, each of which must keep the other.
  const latest = useRef(typed)
  latest.current = typed
  const setValues = (change: FormValues, conflicts = latest.current.conflicts) => {
    const values = { ...latest.current.values, ...change }
    latest.current = { ...latest.current, values, conflicts }
    setTyped(latest.current)
    const kept = fields.filter(({ isSecret }) => !isSecret).map(({ key }) => [key, values[key]])
    const next = toDraft(Object.fromEntries(kept), latest.current.base)
    if (next) keepDraft(draftKey, next)
    else removeDraft(draftKey)
  }
  const settle = (key: string, value: unknown) => {
    const { [key]: _, ...others } = latest.current.conflicts
    setValues({ [key]: value }, others)
  }
  const forgetDraft = () => {
    removeDraft(draftKey)
    setIsRestored(false)
  }
  const start = () => setTyped(startForm(fields, before, undefined))
  return {
    ...typed,
    isRestored,
    change: (key: string, value: unknown) => setValues({ [key]: value }),
    /** Ends a conflict with what was typed or with what others saved. */
    settle,
    keepTyped: () => setTyped({ ...typed, conflicts: {}, changedKeys: [] }),
    forgetDraft,
    discardDraft: () => {
      forgetDraft()
      start()
    },
    /** What was saved is what the next changes are compared with. */
    accept: () => {
      forgetDraft()
      setTyped((now) => ({
        ...{ ...now, base: { ...now.base, ...now.sent }, conflicts: {}, changedKeys: [], isStored: true },
        // Without a change, no other version of the thing follows.
        sent: Object.keys(toChanges(now.sent ?? {}, now.base)).length > 0 ? now.sent : undefined,
      }))
    },
    /** Says what is being saved, because its result may be there before its answer; undefined after a refusal. */
    expectSaved: (sent: FormValues | undefined) => setTyped((now) => ({ ...now, sent, isStored: false })),
  }
}
