// Writes files as a C++ source that defines ringmaster::page::kAssets.
//
// rm_embed_assets OUT.cc FOLDER FILE...   (names below FOLDER; index.html is "/")
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace {

const char* TypeOf(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/plain; charset=utf-8";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::ofstream out(argv[1]);
  const std::string folder = std::string(argv[2]) + "/";
  std::string table;
  out << "#include \"operator/page/assets.h\"\n\nnamespace ringmaster::page {\nnamespace {\n\n";
  for (int i = 3; i < argc; ++i) {
    const std::string name = argv[i];
    std::ifstream file(folder + name, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    if (!file || text.empty()) {
      std::fprintf(stderr, "%s%s can't be read\n", folder.c_str(), name.c_str());
      return 1;
    }
    const std::string variable = "kAsset" + std::to_string(i);
    out << "const unsigned char " << variable << "[] = {";
    for (unsigned char c : text) out << static_cast<int>(c) << ',';
    out << "};\n";
    const std::string path = name == "index.html" ? "/" : "/" + name;
    table += "    {\"" + path + "\", \"" + TypeOf(name) + "\", reinterpret_cast<const char*>(" +
             variable + "), sizeof " + variable + "},\n";
  }
  out << "\nconst Asset kAll[] = {\n"
      << table << "};\n\n}  // namespace\n\n"
      << "const std::span<const Asset> kAssets(kAll);\n\n}  // namespace ringmaster::page\n";
  out.close();
  return out ? 0 : 1;
}
