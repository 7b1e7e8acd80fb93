import { Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { blueprintQuery } from '../api/queries'
import { ProblemMessage } from '../ui/problem-message'
import { SidePanel } from '../ui/side-panel'
import { EntityForm } from './entity-form'
import { entityQuery, toEntityLabel } from './entity-queries'

const route = getRouteApi('/frame/data/$blueprint/$identifier')
const FORM_ID = 'entity-form'

/** One entity beside its list, or a new one. */
export function EntityPanel() {
  const { blueprint: key, identifier } = route.useParams()
  const search = route.useSearch()
  const navigate = useNavigate()
  const isNew = identifier === 'new'
  const blueprint = useQuery(blueprintQuery(key))
  const loaded = useQuery({ ...entityQuery(key, identifier), enabled: !isNew })
  const close = () => navigate({ to: '/data/$blueprint', params: { blueprint: key }, search: search as never })
  const title = isNew
    ? `New entity of ${blueprint.data?.name ?? ''}`
    : loaded.data
      ? toEntityLabel(loaded.data.entity)
      : identifier
  const error = blueprint.error ?? loaded.error
  return (
    <SidePanel
      title={title}
      onClose={close}
      footer={
        <>
          <Button type="submit" form={FORM_ID}>
            Save
          </Button>
          <Text size="xs" c="dimmed">
            Ctrl-Enter saves
          </Text>
        </>
      }
    >
      {error && <ProblemMessage error={error} />}
      {blueprint.data && (isNew || loaded.data) && (
        <EntityForm
          id={FORM_ID}
          blueprint={blueprint.data}
          entity={loaded.data?.entity}
          etag={loaded.data?.etag}
          onSaved={(saved) =>
            navigate({
              to: '/data/$blueprint/$identifier',
              params: { blueprint: key, identifier: saved.identifier },
              search: search as never,
              replace: true,
            })
          }
        />
      )}
    </SidePanel>
  )
}
