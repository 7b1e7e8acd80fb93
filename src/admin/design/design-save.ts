import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api/client'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { Blueprint, BlueprintChange, BlueprintDryRun } from '../api/schema'
import { showNotice, showProblem } from '../ui/notices'
import { listRemovedFields } from './change-sentences'
import { type DesignDraft, toChange } from './design-draft'
import { savedBlueprintQuery } from './design-queries'
import { locateFlaws, type useDesignState } from './design-state'

type DesignState = ReturnType<typeof useDesignState>

/** Sends a change of a blueprint, or only asks what it would do. */
async function sendChange(key: string, body: BlueprintChange, isDryRun: boolean, etag?: string) {
  const { data, response } = await api.PUT('/api/blueprints/{key}', {
    params: { path: { key }, query: isDryRun ? { dryRun: true } : {} },
    body,
    headers: etag ? { 'if-match': etag } : {},
  })
  return { data: data as BlueprintDryRun | Blueprint, response }
}

/** Saves a design. A change that alters entities is shown before, and any other is saved at once. */
export function useDesignSave(design: DesignState) {
  const { before, draft, etag, setFlaws, reset, adoptSaved } = design
  const [isReviewing, setIsReviewing] = useState(false)
  const showFlaws = (error: unknown, sent: DesignDraft) =>
    setFlaws(error instanceof ApiProblem && error.status === 400 ? locateFlaws(error.fieldErrors, sent) : [])
  const dryRun = useMutation({
    mutationFn: async (sent: DesignDraft) =>
      (await sendChange(before.key, toChange(before, sent), true, etag)).data as BlueprintDryRun,
    onMutate: () => setFlaws([]),
    onError: showFlaws,
  })
  const save = useMutation({
    mutationFn: ({ sent, version }: { sent: DesignDraft; version: string | undefined }) =>
      sendChange(before.key, toChange(before, sent), false, version),
    // The progress is beneath the review.
    onMutate: () => setIsReviewing(false),
    onError: (error, { sent }) => showFlaws(error, sent),
    onSuccess: async ({ data, response }, { sent }) => {
      dryRun.reset()
      const saved = { blueprint: data as Blueprint, etag: response.headers.get('etag') ?? undefined }
      adoptSaved(saved, sent)
      queryClient.setQueryData(savedBlueprintQuery(before.key).queryKey, saved)
      showNotice(
        response.status === 202
          ? 'The change takes effect as soon as all entities are prepared.'
          : 'The design is saved.',
      )
      await queryClient.invalidateQueries({ queryKey: ['blueprints'] })
      await queryClient.invalidateQueries({ queryKey: ['entities', before.key] })
    },
  })
  const isBusy = dryRun.isPending || save.isPending
  const fetchSaved = () => queryClient.fetchQuery({ ...savedBlueprintQuery(before.key), staleTime: 0 })
  const review = () => {
    setIsReviewing(true)
    dryRun.mutate(draft)
  }
  const saveReviewed = () => save.mutate({ sent: draft, version: etag })
  const submit = () => {
    if (isBusy) return
    // What is saved is what was checked, also when somebody types meanwhile.
    dryRun.mutate(draft, {
      onSuccess: ({ entities, breaking, rewritten }) => {
        const losesValues = entities > 0 && listRemovedFields(before, draft).length > 0
        const losesHistory = entities > 0 && !!before.history && !draft.history
        if (breaking || rewritten || losesValues || losesHistory) setIsReviewing(true)
        else saveReviewed()
      },
    })
  }
  /** Saves over what somebody else saved meanwhile. */
  const saveOver = () =>
    fetchSaved().then(({ etag: latest }) => save.mutate({ sent: draft, version: latest }), showProblem)
  const discard = () => {
    dryRun.reset()
    save.reset()
    return fetchSaved().then(reset, showProblem)
  }
  const close = () => {
    setIsReviewing(false)
    dryRun.reset()
  }
  const error = save.error ?? dryRun.error
  return {
    dryRun,
    isSaving: save.isPending,
    isBusy,
    submit,
    review,
    isReviewing,
    saveReviewed,
    close,
    saveOver,
    discard,
    error,
  }
}
