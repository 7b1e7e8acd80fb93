import { useQuery } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { blueprintQuery } from '../api/queries'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { EntityForm } from './entity-form'
import { useEntityNavigation } from './entity-navigation'
import { entityQuery } from './entity-queries'

const FORM_ID = 'entity-form'

/** What the address has after `#` before the identifier of the entity that is copied. */
export const COPY_PREFIX = 'copy:'

/** A form for a new entity beside the list. It begins empty, or as a copy of another entity. */
export function NewEntityPanel() {
  const { blueprint: key, close, openEntity } = useEntityNavigation()
  const { hash } = useLocation()
  const blueprint = useQuery(blueprintQuery(key))
  const isCopy = hash.startsWith(COPY_PREFIX)
  const copied = useQuery({ ...entityQuery(key, hash.slice(COPY_PREFIX.length)), enabled: isCopy })
  const error = blueprint.error ?? copied.error
  return (
    <SidePanel title={`New in ${blueprint.data?.name ?? ''}`} onClose={close} footer={<SaveButton form={FORM_ID} />}>
      {error && <ProblemMessage error={error} />}
      {blueprint.data && (!isCopy || copied.data) && (
        <EntityForm
          id={FORM_ID}
          blueprint={blueprint.data}
          copied={copied.data?.entity}
          onSaved={(saved) => openEntity(saved.identifier)}
        />
      )}
    </SidePanel>
  )
}
