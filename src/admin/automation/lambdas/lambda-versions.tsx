import { Group, Text, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { UserLabel } from '../user-name'
import classes from './lambda.module.css'
import { type LoadedLambda, versionsQuery } from './lambda-queries'

type LambdaVersionsProps = { loaded: LoadedLambda; shown: number; onShow: (version: number) => void }

/** The versions of a lambda's code, newest first. A click compares one with the code in the editor. */
export function LambdaVersions({ loaded: { lambda }, shown, onShow }: LambdaVersionsProps) {
  const { data: versions = [], error } = useQuery(versionsQuery(lambda._id))
  if (error) return <ProblemMessage error={error} />
  return (
    <>
      <Text size="xs" c="dimmed" mb="xs">
        Choose a version to compare it with the code in the editor.
      </Text>
      <ul className={classes.list}>
        {versions.map(({ version, created, user }) => (
          <li key={version}>
            <UnstyledButton
              className={`${classes.item} ${version === shown ? classes.chosen : ''}`}
              onClick={() => onShow(version)}
              aria-current={version === shown}
            >
              <Group gap="xs" wrap="nowrap">
                <Text size="sm" fw={500}>
                  Version {version}
                </Text>
                {version === lambda.version && (
                  <Text size="xs" c="dimmed">
                    current
                  </Text>
                )}
              </Group>
              <Text size="xs" c="dimmed" component="div">
                <RelativeTime time={created} /> {user && <UserLabel id={user} />}
              </Text>
            </UnstyledButton>
          </li>
        ))}
      </ul>
    </>
  )
}
