import {
  createRegistry,
  type DescFile,
  type DescService,
  type Registry,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { file_google_rpc_error_details } from '../../gen/google/rpc/error_details_pb.ts';
import { file_google_rpc_status } from '../../gen/google/rpc/status_pb.ts';
import {
  type ServerReflectionRequest,
  ServerReflection as V1,
} from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as V1Alpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { type Method, toMethods } from './method.ts';

/** gRPC codes of an ErrorResponse. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

/** The files of the messages in error details. */
const errorFiles = [file_google_rpc_error_details, file_google_rpc_status];

type Query = ServerReflectionRequest['messageRequest'];

/** The methods of server reflection, v1 and v1alpha, for the given services and itself. */
export function createReflectionMethods(services: readonly DescService[]): Method[] {
  const all = [...services, V1, V1Alpha];
  const files = new Map<string, DescFile>();
  for (const service of all) addWithDependencies(files, service.file);
  // No method refers to them, but errors carry them, and clients ask for them to display errors.
  for (const file of errorFiles) addWithDependencies(files, file);
  const registry = createRegistry(...files.values());
  const names = all.map((service) => ({ name: service.typeName })).sort(byName);

  function answer(query: Query) {
    switch (query.case) {
      case 'listServices':
        return { case: 'listServicesResponse' as const, value: { service: names } };
      case 'fileByFilename':
        return fileWithImports(files.get(query.value), `file "${query.value}"`);
      case 'fileContainingSymbol':
        return fileWithImports(findSymbolFile(registry, query.value), `symbol "${query.value}"`);
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = query.value;
        const extendee = registry.getMessage(containingType);
        const found = extendee && registry.getExtensionFor(extendee, extensionNumber);
        return fileWithImports(found?.file, `extension ${extensionNumber} of "${containingType}"`);
      }
      case 'allExtensionNumbersOfType':
        return extensionNumbers(registry, query.value);
      default:
        return failure(INVALID_ARGUMENT, 'The request asks for nothing.');
    }
  }

  async function* serverReflectionInfo<Request extends { host: string; messageRequest: Query }>(
    requests: AsyncIterable<Request>,
  ) {
    for await (const request of requests) {
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answer(request.messageRequest),
      };
    }
  }

  return [
    ...toMethods(V1, { serverReflectionInfo }),
    // The two versions differ in their package only.
    ...toMethods(V1Alpha, { serverReflectionInfo: serverReflectionInfo as never }),
  ];
}

/** A file and all files it imports, so that the client needs no further request. */
function fileWithImports(file: DescFile | undefined, what: string) {
  if (file === undefined) return failure(NOT_FOUND, `There is no ${what}.`);
  const needed = new Map<string, DescFile>();
  addWithDependencies(needed, file);
  const fileDescriptorProto = [...needed.values()].map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
}

function extensionNumbers(registry: Registry, typeName: string) {
  if (registry.getMessage(typeName) === undefined) {
    return failure(NOT_FOUND, `There is no message "${typeName}".`);
  }
  const extensionNumber = [...registry]
    .filter((type) => type.kind === 'extension' && type.extendee.typeName === typeName)
    .map((type) => (type.kind === 'extension' ? type.number : 0))
    .sort((a, b) => a - b);
  return {
    case: 'allExtensionNumbersResponse' as const,
    value: { baseTypeName: typeName, extensionNumber },
  };
}

function failure(errorCode: number, errorMessage: string) {
  return { case: 'errorResponse' as const, value: { errorCode, errorMessage } };
}

/** A symbol is a type, or a method, field or value inside a type. */
function findSymbolFile(registry: Registry, symbol: string): DescFile | undefined {
  const type = registry.get(symbol);
  if (type !== undefined) return type.file;
  const dot = symbol.lastIndexOf('.');
  const owner = dot < 0 ? undefined : registry.get(symbol.slice(0, dot));
  const name = symbol.slice(dot + 1);
  if (owner?.kind === 'service') return owner.methods.some(named(name)) ? owner.file : undefined;
  if (owner?.kind === 'message') return owner.fields.some(named(name)) ? owner.file : undefined;
  if (owner?.kind === 'enum') return owner.values.some(named(name)) ? owner.file : undefined;
  return undefined;
}

function named(name: string) {
  return (each: { readonly name: string }) => each.name === name;
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

function addWithDependencies(files: Map<string, DescFile>, file: DescFile): void {
  const name = file.proto.name;
  if (files.has(name)) return;
  files.set(name, file);
  for (const dependency of file.dependencies) addWithDependencies(files, dependency);
}
