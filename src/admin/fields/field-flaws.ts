import { useEffect, useRef, useState } from 'react'
import type { FormField, FormValues } from './form-values'
import { findFieldFlaw } from './validation'

/** How long a click takes at most. */
const CLICK_TIME_MS = 200

/** What is wrong with fields of a form, as far as the page can know it: they are checked when the user leaves them. */
export function useFieldFlaws(values: FormValues) {
  const [flaws, setFlaws] = useState<Record<string, string | undefined>>({})
  const pendingChecks = useRef(new Set<ReturnType<typeof setTimeout>>())
  const latestValues = useRef(values)
  latestValues.current = values
  const cancelChecks = () => {
    pendingChecks.current.forEach(clearTimeout)
    pendingChecks.current.clear()
  }
  useEffect(() => cancelChecks, [])
  const checkField = (field: FormField) => {
    // What nobody typed in may be empty until it is saved.
    if (!(field.key in flaws) && (values[field.key] ?? undefined) === undefined) return
    // A sentence moves what is beneath it, so a click that took the focus away has to be over.
    const check = setTimeout(() => {
      pendingChecks.current.delete(check)
      const flaw = findFieldFlaw(field, latestValues.current[field.key])
      setFlaws((all) => ({ ...all, [field.key]: flaw ?? all[field.key] }))
    }, CLICK_TIME_MS)
    pendingChecks.current.add(check)
  }
  return {
    /** The flaws by field; an empty one says that the value was changed since the server refused it. */
    flaws,
    checkField,
    clearFlaw: (key: string) => setFlaws((all) => ({ ...all, [key]: '' })),
    /** Forgets all flaws before a form is sent, because the server's answer says more. */
    clearFlaws: () => {
      cancelChecks()
      setFlaws({})
    },
  }
}
