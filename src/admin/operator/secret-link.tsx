import { Anchor, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../ui/code-block'

/** A link that works once, to copy or to open. */
export const SecretLink = ({ text, label, link }: { text: string; label: string; link: string }) => (
  <Stack gap="xs">
    <Text size="sm">{text}</Text>
    <CodeBlock label={label} code={link} />
    <Anchor href={link} target="_blank" rel="noopener noreferrer" size="sm">
      Open it in a new tab
    </Anchor>
  </Stack>
)
