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
    /** Goes on with what was typed, although there is another version. */
    keepMine: () => draft && keep({ ...draft, version: saved.version }),
    discard,
    /** Goes on from what was saved. */
    accept: (version: { code: string; version: number }) => {
      discard()
      setDraft({ code: version.code, version: version.version })
    },
  }
}
