import { createContext, use, useCallback, useEffect, useMemo, useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../api/drafts'
import type { ProblemDetail } from '../api/problem'
import type { Blueprint } from '../api/schema'
import { type DesignDraft, type DraftField, toChange, toDraft } from './design-draft'
import type { SavedBlueprint } from './design-queries'

/** The blueprint that is changed, what it becomes, and what the server refused of it. */
export type Design = {
  before: Blueprint
  draft: DesignDraft
  update(change: (draft: DesignDraft) => DesignDraft): void
  updateFields(change: (fields: DraftField[]) => DraftField[]): void
  /** The paths name fields by their ids, so that they stay right when fields move. */
  flaws: ProblemDetail[]
}

/** Gives the views of a design what they change. */
export const DesignContext = createContext<Design | undefined>(undefined)

/** Returns the design that the view belongs to. */
export const useDesign = (): Design => use(DesignContext)!

type Begun = SavedBlueprint & { draft: DesignDraft }

const begin = (saved: SavedBlueprint): Begun => ({
  ...saved,
  draft: toDraft(
    saved.blueprint,
    saved.blueprint.fields.map(({ key }) => key),
  ),
})

/** Returns what was begun in this browser, unless it was another version of this page that kept it. */
function readBegun(draftKey: string): Begun | undefined {
  const begun = readDraft<Begun>(draftKey)
  return Array.isArray(begun?.draft?.fields) && Array.isArray(begun.blueprint?.fields) ? begun : undefined
}

/** Returns the flaws of a refused change, with the ids of fields instead of their positions. */
export const locateFlaws = (details: ProblemDetail[], { fields }: DesignDraft): ProblemDetail[] =>
  details.map(({ path = '', message }) => ({
    message,
    path: path
      .replace(/^\/fields\/(\d+)/, (_, index) => `/fields/${fields[Number(index)]?.id}`)
      .replace(/^\/computed\/([^/]+)/, (_, key) => `/fields/${fields.find((field) => field.key === key)?.id}/formula`),
  }))

/** The changes of a blueprint that are not saved yet. They are kept in the browser. */
export function useDesignState(saved: SavedBlueprint) {
  const draftKey = `design:${saved.blueprint.key}`
  const [begun, setBegun] = useState(() => readBegun(draftKey) ?? begin(saved))
  const [flaws, setFlaws] = useState<ProblemDetail[]>([])
  const change = useMemo(() => toChange(begun.blueprint, begun.draft), [begun])
  const isChanged = Object.keys(change).length > 0
  useEffect(() => {
    if (isChanged) keepDraft(draftKey, begun)
    else removeDraft(draftKey)
  }, [draftKey, begun, isChanged])
  // Without changes of one's own, the design follows what others save.
  useEffect(() => {
    if (!isChanged && saved.etag !== begun.etag) setBegun(begin(saved))
  }, [saved, begun.etag, isChanged])
  const update = useCallback(
    (next: (draft: DesignDraft) => DesignDraft) => setBegun((now) => ({ ...now, draft: next(now.draft) })),
    [],
  )
  const updateFields = useCallback(
    (next: (fields: DraftField[]) => DraftField[]) => update((draft) => ({ ...draft, fields: next(draft.fields) })),
    [update],
  )
  const reset = useCallback((to: SavedBlueprint) => {
    setBegun(begin(to))
    setFlaws([])
  }, [])
  const { blueprint: before, draft, etag } = begun
  return { before, draft, etag, change, isChanged, update, updateFields, flaws, setFlaws, reset }
}
