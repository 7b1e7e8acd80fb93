export const makeDemo = async (_port: number) => ''
