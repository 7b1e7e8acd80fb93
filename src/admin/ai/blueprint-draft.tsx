import { Button, Group, Select, Stack, Text, Textarea } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { keepDraft, readDraft, removeDraft } from '../api/drafts'
import { EmptyState } from '../ui/empty-state'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { sourcesQuery } from './ai-queries'
import { createDrafted } from './draft/blueprint-creation'
import classes from './draft/draft.module.css'
import { DraftReview } from './draft/draft-review'
import { DraftSamples } from './draft/draft-samples'
import { type DraftBlueprint, toDrafts, toNewBlueprints } from './draft/draft-state'
import type { SampleData } from './draft/sample-data'

const DRAFT_KEY = 'blueprint-draft'

type BlueprintDraftProps = {
  /** Called with the keys of the blueprints that were made. */
  onCreated: (keys: string[]) => void
}

/** Has a model draft blueprints from a description, lets a person review them, and makes them. */
export function BlueprintDraft({ onCreated }: BlueprintDraftProps) {
  const sources = useQuery(sourcesQuery)
  const [purpose, setPurpose] = useState(() => readDraft<string>(DRAFT_KEY) ?? '')
  const [chosenSource, setChosenSource] = useState<string>()
  const [drafts, setDrafts] = useState<DraftBlueprint[]>([])
  const [samples, setSamples] = useState<SampleData>({})
  const source = chosenSource ?? sources.data?.[0]?._id ?? ''
  const blueprints = toNewBlueprints(drafts)
  const draft = useMutation({
    mutationFn: () =>
      fetchData(
        api.POST('/api/ai/sources/{sourceId}/blueprints', {
          params: { path: { sourceId: source } },
          body: { prompt: purpose },
        }),
      ),
    onSuccess: ({ blueprints: drafted }) => {
      setDrafts(toDrafts(drafted))
      setSamples({})
    },
  })
  const create = useMutation({
    mutationFn: () => createDrafted(blueprints, samples),
    onSuccess: ({ keys, refusals }) => {
      removeDraft(DRAFT_KEY)
      if (refusals.length) showNotice(`The blueprints are made, without some sample data: ${refusals.join(' ')}`)
      onCreated(keys)
    },
  })
  if (sources.error) return <ProblemMessage error={sources.error} />
  if (sources.data?.length === 0)
    return (
      <EmptyState
        text="A model drafts blueprints from your own words. Connect OpenAI, or any server that speaks its API."
        action={{ label: 'Connect an AI source', to: '/ai/sources/new' }}
      />
    )
  const changePurpose = (typed: string) => {
    setPurpose(typed)
    keepDraft(DRAFT_KEY, typed)
  }
  return (
    <Stack className={classes.draft} gap="md">
      <Textarea
        label="What do you want to keep?"
        description="In your own words, with what belongs to what, and who may see it."
        placeholder="A library with books and authors. Members borrow books; everybody sees what there is."
        autosize
        minRows={3}
        maxRows={10}
        autoFocus
        dir="auto"
        value={purpose}
        onChange={(event) => changePurpose(event.currentTarget.value)}
      />
      <Group gap="xs" align="flex-end">
        {(sources.data?.length ?? 0) > 1 && (
          <Select
            size="xs"
            aria-label="Source"
            allowDeselect={false}
            data={sources.data!.map(({ _id, name }) => ({ value: _id, label: name }))}
            value={source}
            onChange={(chosen) => setChosenSource(chosen ?? undefined)}
          />
        )}
        <Button
          variant={drafts.length ? 'default' : 'filled'}
          disabled={!source || !purpose.trim()}
          loading={draft.isPending}
          onClick={() => draft.mutate()}
        >
          {drafts.length ? 'Draft again' : 'Draft blueprints'}
        </Button>
      </Group>
      {draft.error && <ProblemMessage error={draft.error} />}
      {drafts.length > 0 && (
        <>
          <Text size="sm" role="status">
            Nothing is made yet. Leave out or rename what does not fit.
          </Text>
          <DraftReview drafts={drafts} onChange={setDrafts} />
          <DraftSamples {...{ source, blueprints, purpose, samples }} onChange={setSamples} />
          {create.error && <ProblemMessage error={create.error} />}
          <Button
            w="fit-content"
            disabled={!blueprints.length}
            loading={create.isPending}
            onClick={() => create.mutate()}
          >
            {`Create ${blueprints.length} ${blueprints.length === 1 ? 'blueprint' : 'blueprints'}`}
          </Button>
        </>
      )}
    </Stack>
  )
}

/** The draft of blueprints as a screen of its own. */
export function BlueprintDraftScreen() {
  const navigate = useNavigate()
  const open = ([first]: string[]) => navigate({ to: '/data/$blueprint', params: { blueprint: first ?? '' } })
  return (
    <Screen title="Draft blueprints">
      <div className={classes.page}>
        <BlueprintDraft onCreated={open} />
      </div>
    </Screen>
  )
}
