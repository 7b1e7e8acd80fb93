import { Badge } from '@mantine/core'

const COLORS = { good: 'green', warning: 'yellow', bad: 'red', neutral: 'gray' }

/** A state as a quiet tag: green and amber for what goes well or needs a look, red for what failed. */
export const StateTag = ({ label, tone = 'neutral' }: { label: string; tone?: keyof typeof COLORS }) => (
  <Badge variant="light" color={COLORS[tone]} radius="sm" tt="none" fw={500}>
    {label}
  </Badge>
)
