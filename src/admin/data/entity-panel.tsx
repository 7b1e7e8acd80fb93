import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { blueprintQuery } from '../api/queries'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { EntityForm } from './entity-form'
import { toEntityLabel } from './entity-label'
import { entityQuery } from './entity-queries'

const listRoute = getRouteApi('/frame/data/$blueprint')
const entityRoute = getRouteApi('/frame/data/$blueprint/$identifier')
const FORM_ID = 'entity-form'

/** Returns where the panel leads: back to its list, or to an entity; the filters of the list stay. */
function useEntityPlaces() {
  const { blueprint } = listRoute.useParams()
  const search = listRoute.useSearch() as never
  const navigate = useNavigate()
  return {
    blueprint,
    close: () => navigate({ to: '/data/$blueprint', params: { blueprint }, search }),
    openEntity: (identifier: string) =>
      navigate({ to: '/data/$blueprint/$identifier', params: { blueprint, identifier }, search, replace: true }),
  }
}

type FormPanelProps = { title: string; error: unknown; onClose: () => void; children: ReactNode }

const FormPanel = ({ title, error, onClose, children }: FormPanelProps) => (
  <SidePanel title={title} onClose={onClose} footer={<SaveButton form={FORM_ID} />}>
    {error ? <ProblemMessage error={error} /> : children}
  </SidePanel>
)

/** One entity beside its list. */
export function EntityPanel() {
  const { blueprint: key, close, openEntity } = useEntityPlaces()
  const { identifier } = entityRoute.useParams()
  const blueprint = useQuery(blueprintQuery(key))
  const loaded = useQuery(entityQuery(key, identifier))
  return (
    <FormPanel
      title={loaded.data ? toEntityLabel(loaded.data.entity) : identifier}
      error={blueprint.error ?? loaded.error}
      onClose={close}
    >
      {blueprint.data && loaded.data && (
        <EntityForm
          id={FORM_ID}
          blueprint={blueprint.data}
          entity={loaded.data.entity}
          etag={loaded.data.etag}
          onSaved={(saved) => openEntity(saved.identifier)}
        />
      )}
    </FormPanel>
  )
}

/** A form for a new entity beside the list. */
export function NewEntityPanel() {
  const { blueprint: key, close, openEntity } = useEntityPlaces()
  const { data: blueprint, error } = useQuery(blueprintQuery(key))
  return (
    <FormPanel title={`New in ${blueprint?.name ?? ''}`} error={error} onClose={close}>
      {blueprint && <EntityForm id={FORM_ID} blueprint={blueprint} onSaved={(saved) => openEntity(saved.identifier)} />}
    </FormPanel>
  )
}
