import { Modal, Stack, Text, Title } from '@mantine/core'
import { Brand } from '../branding/brand'
import { FullPage } from '../ui/full-page'

const TITLE = 'This tenant is suspended'

/** What it means that the tenant is suspended, and whom to ask. */
const Explanation = ({ isWorking }: { isWorking: boolean }) => (
  <Stack gap="sm" role="status">
    <Text size="sm">
      The operator of this installation has suspended it. Until it is resumed, nobody can work with it.
    </Text>
    <Text size="sm">
      Ask whoever runs this server. This page goes on by itself as soon as the tenant is resumed
      {isWorking ? ', and nothing you typed is lost.' : '.'}
    </Text>
  </Stack>
)

/** The screen of a suspended tenant. */
export const Suspended = () => (
  <FullPage>
    <Brand isLarge />
    <Title order={1} mb="md">
      {TITLE}
    </Title>
    <Explanation isWorking={false} />
  </FullPage>
)

/** What lies over the screen of somebody who works while the tenant is suspended; what was typed beneath stays. */
export const SuspendedDialog = () => (
  <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} title={TITLE}>
    <Explanation isWorking />
  </Modal>
)
