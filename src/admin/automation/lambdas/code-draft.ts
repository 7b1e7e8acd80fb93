import { useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../../api/drafts'

type Draft = { code: string; version: number }

/** The code that somebody edits. It is kept in the browser until it is saved, with the version that it began from. */
export function useCodeDraft(id: string, saved: { code: string; version: number }) {
  const key = `lambda-code:${id}`
  const [draft, setDraft] = useState<Draft | undefined>(() => readDraft<Draft>(key))
  const isDirty = draft !== undefined && draft.code !== saved.code
  const keep = (next: Draft) => {
    setDraft(next)
    keepDraft(key, next)
  }
  const discard = () => {
    setDraft(undefined)
    removeDraft(key)
  }
  return {
    code: draft?.code ?? saved.code,
    isDirty,
    /** Whether somebody saved another version since the editing began. */
    isOutdated: isDirty && draft.version < saved.version,
    change: (code: string) => keep({ code, version: isDirty ? draft.version : saved.version }),
    /** Goes on with what was typed, although somebody saved another version. */
    keepMine: () => draft && keep({ ...draft, version: saved.version }),
    discard,
    /** Goes on from the code as it was saved; what was typed since `sent` was sent stays. */
    acceptSaved: ({ code, version }: Draft, sent: string) => {
      const current = readDraft<Draft>(key)
      if (current && current.code !== sent) return keep({ code: current.code, version })
      removeDraft(key)
      setDraft({ code, version })
    },
    /** Goes on from another version of the code. */
    replace: ({ code, version }: Draft) => {
      removeDraft(key)
      setDraft({ code, version })
    },
  }
}
