import { Alert, Button, Group, List, Text } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet } from '@tanstack/react-router'
import { useDeferredValue, useMemo } from 'react'
import { ApiProblem } from '../api/problem'
import { BlueprintTabs } from '../data/blueprint-tabs'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { AlterationProgress } from './alteration-progress'
import { ChangeReview } from './change-review'
import { describeChanges, listRemovedFields } from './change-sentences'
import classes from './design.module.css'
import { type SavedBlueprint, savedBlueprintQuery } from './design-queries'
import { useDesignSave } from './design-save'
import { DesignContext, useDesignState } from './design-state'

const route = getRouteApi('/frame/data/$blueprint/all/design')

const views = [
  { label: 'Fields', to: '/data/$blueprint/all/design' },
  { label: 'Rules', to: '/data/$blueprint/all/design/rules' },
  { label: 'See as', to: '/data/$blueprint/all/design/see-as' },
  { label: 'Settings', to: '/data/$blueprint/all/design/settings' },
  { label: 'JSON', to: '/data/$blueprint/all/design/json' },
] as const

/** The design of a blueprint: its fields, rules and settings, which are changed together and saved at once. */
export function DesignScreen() {
  const { blueprint: key } = route.useParams()
  const { data, error } = useQuery(savedBlueprintQuery(key))
  if (error) return <ProblemMessage error={error} />
  return data ? <DesignEditor key={key} saved={data} /> : null
}

function DesignEditor({ saved }: { saved: SavedBlueprint }) {
  const design = useDesignState(saved)
  const saving = useDesignSave(design)
  const { before, draft, isChanged, flaws } = design
  // Typing does not wait for the sentences.
  const shownDraft = useDeferredValue(draft)
  const sentences = useMemo(
    () => (isChanged ? describeChanges(before, shownDraft) : []),
    [before, shownDraft, isChanged],
  )
  useHotkeys([['mod+Enter', () => isChanged && saving.submit()]], [])
  return (
    <Screen
      title={before.name}
      request={{ method: 'GET', path: `/api/blueprints/${before.key}` }}
      tabs={<BlueprintTabs blueprint={before.key} current="Design" />}
      toolbar={<DesignViews blueprint={before.key} />}
      actions={
        isChanged && (
          <>
            <Button variant="subtle" onClick={saving.review} visibleFrom="sm">
              {sentences.length === 1 ? '1 change' : `${sentences.length} changes`}
            </Button>
            <Button variant="default" onClick={saving.discard}>
              Discard
            </Button>
            <Button onClick={saving.submit} loading={saving.isBusy}>
              Save
            </Button>
          </>
        )
      }
    >
      <div className={classes.design}>
        <AlterationProgress blueprint={before.key} isSaving={saving.isSaving} />
        {!!saving.error && !saving.isReviewing && <DesignProblem design={design} saving={saving} />}
        <DesignContext value={{ before, draft, update: design.update, updateFields: design.updateFields, flaws }}>
          <Outlet />
        </DesignContext>
      </div>
      {saving.isReviewing && (
        <ChangeReview
          blueprint={before}
          sentences={sentences}
          removedKeys={listRemovedFields(before, draft).map(({ key }) => key)}
          report={saving.dryRun.data}
          error={saving.error}
          isSaving={saving.isSaving}
          onSave={saving.saveReviewed}
          onClose={saving.close}
        />
      )}
    </Screen>
  )
}

const DesignViews = ({ blueprint }: { blueprint: string }) => (
  <nav className={classes.views} aria-label="Parts of the design">
    {views.map(({ label, to }) => (
      <Link
        key={label}
        to={to}
        params={{ blueprint }}
        className={classes.view}
        activeOptions={{ exact: true, includeSearch: false }}
        activeProps={{ className: classes.currentView }}
      >
        {label}
      </Link>
    ))}
  </nav>
)

type DesignProblemProps = { design: ReturnType<typeof useDesignState>; saving: ReturnType<typeof useDesignSave> }

/** Why a design could not be saved: its flaws one by one, or that somebody else has saved another one. */
function DesignProblem({ design: { flaws, draft }, saving }: DesignProblemProps) {
  const { error } = saving
  if (error instanceof ApiProblem && error.status === 412)
    return (
      <Alert color="yellow" variant="light" m="md" role="alert">
        Someone else has changed this blueprint since you opened it.
        <Group mt="xs">
          <Button onClick={saving.saveOver}>Save my version over it</Button>
          <Button variant="default" onClick={saving.discard}>
            Discard my version
          </Button>
        </Group>
      </Alert>
    )
  if (!flaws.length) return <ProblemMessage error={error} />
  const nameOf = (path: string) =>
    draft.fields.find(({ id }) => path === `/fields/${id}` || path.startsWith(`/fields/${id}/`))?.key
  return (
    <Alert color="red" variant="light" m="md" role="alert">
      <Text size="sm" fw={500}>
        The design is not saved yet.
      </Text>
      <List size="sm">
        {flaws.slice(0, 10).map(({ path, message }) => (
          <List.Item key={path + message}>
            {nameOf(path) !== undefined && <bdi>“{nameOf(path)}”: </bdi>}
            {message}
          </List.Item>
        ))}
      </List>
    </Alert>
  )
}
