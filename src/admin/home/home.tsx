import { Anchor, List } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery } from '../api/queries'
import { EntityCount } from '../data/entity-count'
import { EmptyState } from '../ui/empty-state'
import { Screen } from '../ui/screen'

/** What there is: the entities of each blueprint, which lead to their lists. */
export function Home() {
  const { data: blueprints } = useQuery(blueprintsQuery)
  return (
    <Screen title="Home">
      {blueprints?.length === 0 && (
        <EmptyState
          text="There are no blueprints yet. A blueprint describes one kind of data."
          action={{ label: 'Create a blueprint', href: '/admin/blueprints/new' }}
        />
      )}
      <List listStyleType="none" px="md" spacing="xs">
        {blueprints?.map(({ key, name }) => (
          <List.Item key={key}>
            <Anchor component={Link} to={`/data/${key}`}>
              <EntityCount blueprint={key} /> {name.toLowerCase()}
            </Anchor>
          </List.Item>
        ))}
      </List>
    </Screen>
  )
}
