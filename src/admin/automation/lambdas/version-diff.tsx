import { Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import type { Lambda } from '../../api/schema'
import { CodeDiff } from '../../ui/code-diff'
import { showNotice } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { type LoadedLambda, restoreVersion, versionsQuery } from './lambda-queries'

type VersionDiffProps = {
  loaded: LoadedLambda
  version: number
  /** The code in the editor. */
  code: string
  onClose: () => void
  onRestored: (lambda: Lambda) => void
}

/** What changed from a version to the code in the editor, and a button that restores that version. */
export function VersionDiff({ loaded, version, code, onClose, onRestored }: VersionDiffProps) {
  const { data: versions, error } = useQuery(versionsQuery(loaded.lambda._id))
  const compared = versions?.find((each) => each.version === version)
  const restore = useMutation({
    mutationFn: () => restoreVersion(loaded, version),
    onSuccess: ({ lambda }) => {
      onRestored(lambda)
      onClose()
      showNotice(`Version ${version} is back as version ${lambda.version}.`)
    },
  })
  const label = `Changes since version ${version}`
  return (
    <>
      <Group mb="xs" gap="xs">
        <Text fw={500} flex={1}>
          {label}
        </Text>
        {version !== loaded.lambda.version && (
          <Button variant="default" onClick={() => restore.mutate()} loading={restore.isPending} disabled={!compared}>
            Restore version {version}
          </Button>
        )}
        <Button variant="default" onClick={onClose}>
          Back to the code
        </Button>
      </Group>
      {(error ?? restore.error) && <ProblemMessage error={error ?? restore.error} />}
      {versions && !compared && <Text c="dimmed">This version is no longer kept.</Text>}
      {compared?.code === code && (
        <Text size="sm" c="dimmed" mb="xs">
          Both are the same.
        </Text>
      )}
      {compared && <CodeDiff label={label} language="typescript" before={compared.code} after={code} isTall />}
    </>
  )
}
