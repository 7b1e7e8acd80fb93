import { Button, Skeleton, Timeline } from '@mantine/core'
import type { Blueprint } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import type { LoadedEntity } from './entity-queries'
import { useEntityVersions } from './entity-versions'
import { VersionItem } from './version-item'

/** The versions of an entity, the latest first, where the blueprint has a history. */
export function EntityTimeline({ blueprint, loaded }: { blueprint: Blueprint; loaded: LoadedEntity }) {
  const versions = useEntityVersions(blueprint.key, loaded.entity.identifier)
  if (versions.error) return <ProblemMessage error={versions.error} />
  if (versions.isEmpty) return <EmptyState text="There are no versions yet. The first change makes one." />
  if (!versions.count) return <Skeleton height={120} animate={false} />
  return (
    <>
      <Timeline bulletSize={12} lineWidth={1} aria-label="History">
        {versions.rows.map((version, n) => (
          <Timeline.Item key={version.version} role="group" aria-label={`Version ${version.version}`}>
            <VersionItem {...{ blueprint, loaded, version }} isLatest={n === 0} />
          </Timeline.Item>
        ))}
      </Timeline>
      {versions.hasMore && (
        <Button variant="subtle" mt="sm" onClick={versions.fetchMore} loading={versions.isFetchingMore}>
          Earlier versions
        </Button>
      )}
    </>
  )
}
