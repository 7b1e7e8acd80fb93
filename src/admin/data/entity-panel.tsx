import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useLocation } from '@tanstack/react-router'
import { lazy, Suspense, use } from 'react'
import { blueprintQuery } from '../api/queries'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { EntityFacts } from './entity-facts'
import { EntityForm } from './entity-form'
import { toEntityLabel } from './entity-label'
import { EntityMenu } from './entity-menu'
import { useEntityNavigation } from './entity-navigation'
import { entityQuery } from './entity-queries'
import { ListNeighbor } from './list-neighbor'

const EntityHistory = lazy(async () => ({ default: (await import('./entity-history')).EntityHistory }))

const entityRoute = getRouteApi('/frame/data/$blueprint/$identifier')
const FORM_ID = 'entity-form'
const HISTORY = 'history'

/** One entity beside its list: its fields, and what happened to it. */
export function EntityPanel() {
  const { blueprint: key, close, openEntity } = useEntityNavigation()
  const { identifier } = entityRoute.useParams()
  const { hash } = useLocation()
  const findNeighbor = use(ListNeighbor)
  const blueprint = useQuery(blueprintQuery(key))
  const loaded = useQuery(entityQuery(key, identifier))
  const error = blueprint.error ?? loaded.error
  const isHistory = hash === HISTORY
  const step = (by: 1 | -1) => {
    const next = findNeighbor(identifier, by)
    if (next !== undefined) void openEntity(next, hash || undefined)
  }
  return (
    <SidePanel
      title={loaded.data ? toEntityLabel(loaded.data.entity) : identifier}
      onClose={close}
      onStep={step}
      actions={
        blueprint.data &&
        loaded.data && <EntityMenu blueprint={blueprint.data} loaded={loaded.data} onDeleted={close} />
      }
      footer={isHistory ? undefined : <SaveButton form={FORM_ID} />}
    >
      {error && <ProblemMessage error={error} />}
      {blueprint.data && loaded.data && (
        <Tabs
          value={isHistory ? HISTORY : 'fields'}
          onChange={(tab) => openEntity(identifier, tab === HISTORY ? HISTORY : undefined)}
          keepMounted={false}
        >
          <Tabs.List mb="sm">
            <Tabs.Tab value="fields">Fields</Tabs.Tab>
            <Tabs.Tab value={HISTORY}>History</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="fields">
            <EntityForm
              id={FORM_ID}
              blueprint={blueprint.data}
              loaded={loaded.data}
              onSaved={(saved) => openEntity(saved.identifier)}
            />
            <EntityFacts entity={loaded.data.entity} />
          </Tabs.Panel>
          <Tabs.Panel value={HISTORY}>
            <Suspense>
              <EntityHistory blueprint={blueprint.data} loaded={loaded.data} />
            </Suspense>
          </Tabs.Panel>
        </Tabs>
      )}
    </SidePanel>
  )
}
